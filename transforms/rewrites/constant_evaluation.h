// Finds the nodes of a graph whose values do not depend on inputs that are fed, and computes them.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_EVALUATION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/shapes/known_integers.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/function_evaluation.h"

namespace permafrost {

struct EvaluationLimits {
  absl::flat_hash_set<absl::string_view> exclude_ops;
  absl::flat_hash_set<absl::string_view> exclude_nodes;
  int64_t max_bytes = 0;  // Per tensor.
};

class ConstantEvaluation {
 public:
  struct Value {
    bool is_constant = false;
    // A node that is not constant reads this one, so the graph needs its value.
    bool is_read = false;
    // The Const whose value is output 0: the node itself, or the end of a chain of Identity and similar nodes. Else
    // null.
    Node* root = nullptr;
    // The outputs of a constant without a root; cleared after the last use.
    std::vector<Tensor> outputs;
    // Nodes that are not constant and must run before this one, in order of id; null if there are none. A constant that
    // replaces the node needs them as control inputs.
    std::shared_ptr<const std::vector<Node*>> controls;
  };

  // `known` and `functions` may be null; without `functions`, nodes that call functions are not computed. All arguments
  // must outlive this.
  ConstantEvaluation(Graph* graph, const EvaluationLimits& limits, const ShapesAndIntegers* known,
                     FunctionEvaluation* functions, PassContext* context);

  // Evaluates the nodes of `order`, which is topological, for which `is_needed` (by id) is set. A node whose kernel is
  // missing or fails is not constant, and a miss gives the reason. Returns an error only for misuse: no evaluator.
  absl::Status Run(const std::vector<Node*>& order, const std::vector<bool>& is_needed);

  const Value& of(const Node& node) const { return values_[node.id()]; }
  // Returns true if a Const of the same name can replace the node: it has one output, which was computed.
  bool CanBecomeConst(const Node& node) const;
  int64_t num_evaluated() const { return num_evaluated_; }
  int64_t num_refused() const { return num_refused_; }
  // Returns the number of outputs of Shape, ShapeN, Rank, Size and of arithmetic on them that follow from shapes alone.
  int64_t num_known_shapes() const { return num_known_shapes_; }

 private:
  bool Decide(Node* node, Value* value);
  bool FoldShape(const Node& node, Value* value);
  bool FoldIntegers(const Node& node, Value* value);
  bool GatherControls(const Node& node, bool with_data, Value* value);
  bool Compute(const Node& node, Value* value);
  bool Refuse(const Node& node, absl::string_view reason, absl::string_view way_out = "");
  bool MayRun(const Node& node);
  bool FitsStatically(const Node& node);

  Graph* graph_;
  const EvaluationLimits& limits_;
  const ShapeMap* shapes_;       // Null if shapes are not known.
  const ValueSource* integers_;  // Null if shapes are not known.
  FunctionEvaluation* functions_;
  PassContext* context_;
  std::vector<Value> values_;          // By node id.
  std::vector<uint32_t> num_waiting_;  // By node id: number of needed inputs that have yet to read its value.
  bool has_control_flow_ = false;
  int64_t num_evaluated_ = 0;
  int64_t num_refused_ = 0;
  int64_t num_known_shapes_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_EVALUATION_H_

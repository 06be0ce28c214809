// Inlines calls of functions, including the calls inside their bodies.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CALL_INLINING_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CALL_INLINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "transforms/pass.h"
#include "transforms/rewrites/body_copy.h"

namespace permafrost {

struct InliningOptions {
  bool stateful = true;            // True to inline StatefulPartitionedCall as well.
  int64_t max_nodes = 10'000'000;  // Total number of nodes that copies may add.
};

class CallInlining {
 public:
  // All arguments must outlive this.
  CallInlining(const FunctionLibrary& library, const InliningOptions& options, PassContext* context);

  // A function body with all its calls inlined.
  struct Body {
    std::unique_ptr<Graph> graph;  // Null if calls must stay; `obstacle` gives the reason.
    std::string obstacle;
    bool has_effect = false;
  };
  // Returns the body of a function, built once for each combination of function and attributes. Returns InvalidArgument
  // for a recursive function, ResourceExhausted if calls are nested too deep or create too many nodes, and the errors
  // of FunctionLibrary::Instantiate. `caller` is used in messages.
  absl::StatusOr<const Body*> BodyOf(const Node& caller, const FunctionRef& function);

  // Inlines every call of the graph that is not a declared input, and returns the number of calls. Returns NotFound if
  // a function does not exist, InvalidArgument if call and function do not match, and the errors of BodyOf.
  absl::StatusOr<int64_t> InlineCalls(Graph* graph);

  // Replaces `node` with the body, whose arguments are the data inputs from `first_arg` on, and returns the nodes of
  // the copy. `in_frame`: the graph has V1 control flow, and all copies must run in the frame of the node's inputs.
  absl::StatusOr<std::vector<Node*>> InlineAt(Graph* graph, Node* node, int first_arg, const Body& body, bool in_frame);

  CopyBudget* budget() { return &budget_; }

 private:
  struct Call {
    Node* node;
    FunctionRef function;
    std::string key;
  };
  struct Open {
    std::string key;
    std::string name;
    std::unique_ptr<Graph> body;
    std::vector<Call> calls;
    size_t next = 0;
  };

  bool IsCall(const Node& node) const;
  absl::StatusOr<std::vector<Call>> CallsOf(const Graph& graph) const;
  absl::Status Flatten(const Node& caller, const FunctionRef& function, const std::string& key);
  static absl::Status Circle(const std::vector<Open>& stack, const Call& call);
  absl::Status Finish(Open* open);
  bool CalleeHasEffect(const Node& node, const std::vector<Call>& calls) const;
  absl::StatusOr<int64_t> InlineAll(Graph* graph, const std::vector<Call>& calls, bool is_body);

  const FunctionLibrary& library_;
  const InliningOptions options_;
  PassContext* context_;
  CopyBudget budget_;
  absl::flat_hash_map<std::string, std::unique_ptr<Body>> bodies_;  // By key.
};

// The nodes and tensors that replace a call.
struct Replacement {
  std::vector<TensorRef> outputs;
  std::vector<DType> types;  // Types of the outputs.
  std::vector<Node*> done;   // The call has completed when these have run.
  // Those of `done` that the outputs do not depend on and that must run before an output is read.
  std::vector<Node*> pending;
};

// Redirects the uses of `node` to its replacement and removes it. The node is kept as Identity, IdentityN or NoOp if
// its name is part of the interface, or if its control edges require it. O(uses + outputs + done).
absl::Status ReplaceCall(Graph* graph, Node* node, Replacement replacement);

// Returns the copies of the control outputs of a body that not every output depends on.
std::vector<Node*> PendingControls(const Graph& body, const BodyCopy& copy);

// Returns InvalidArgument unless attribute `key` of `node` lists the types of the given _Arg or _Retval nodes.
absl::Status CheckTypes(const Node& node, absl::string_view key, const std::vector<Node*>& nodes);

// Returns one node that runs after all control inputs of `node`: the only one, or a new NoOp. Null if there are none.
absl::StatusOr<Node*> ControlGate(Graph* graph, Node* node);

// Returns true if the graph has ops of V1 control flow.
bool HasControlFlow(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CALL_INLINING_H_

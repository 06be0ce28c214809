// Puts the bodies of functions in the place of nodes that call them, whatever is called inside them included.
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
  bool stateful = true;            // Also StatefulPartitionedCall.
  int64_t max_nodes = 10'000'000;  // That copies make, in all.
};

class CallInlining {
 public:
  // All must outlive this.
  CallInlining(const FunctionLibrary& library, const InliningOptions& options, PassContext* context);

  // A body in which nothing is left to inline.
  struct Body {
    std::unique_ptr<Graph> graph;  // Null: `obstacle` says why calls stay.
    std::string obstacle;
    bool has_effect = false;
  };
  // Made once for each function and the attributes that it is called with. InvalidArgument for a function that calls
  // itself, and as FunctionLibrary::Instantiate; ResourceExhausted when calls are inside each other too deep or make
  // too many nodes. `caller` is for messages.
  absl::StatusOr<const Body*> BodyOf(const Node& caller, const FunctionRef& function);

  // Inlines every call of the graph that is not a declared input, and returns how many. NotFound for a call whose
  // function does not exist; InvalidArgument where call and function do not fit; and as BodyOf.
  absl::StatusOr<int64_t> InlineCalls(Graph* graph);

  // Puts the body in the place of `node`, whose data inputs from `first_arg` on are the arguments, and returns its
  // nodes. `in_frame`: the graph has V1 control flow, and everything must run where the node's inputs are.
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

// What has taken the place of a call.
struct Replacement {
  std::vector<TensorRef> outputs;
  std::vector<DType> types;  // Of the outputs.
  std::vector<Node*> done;   // When these have run, the call has.
  // Of these, what does not run for the sake of the outputs, and must before an output is read.
  std::vector<Node*> pending;
};

// Gives the uses of `node` what has taken its place, and removes it. It stays, as Identity, IdentityN or NoOp, where
// its name is part of the interface, and where that is what makes others wait. O(uses + outputs + done).
absl::Status ReplaceCall(Graph* graph, Node* node, Replacement replacement);

// The control outputs of a body that do not run for the sake of each of its outputs, in their copies.
std::vector<Node*> PendingControls(const Graph& body, const BodyCopy& copy);

// InvalidArgument unless the types that attribute `key` of `node` lists are those of _Arg or _Retval nodes.
absl::Status CheckTypes(const Node& node, absl::string_view key, const std::vector<Node*>& nodes);

// One node that runs after all control inputs of `node`: the only one, or a new NoOp. Null when there are none.
absl::StatusOr<Node*> ControlGate(Graph* graph, Node* node);

// True when the graph has ops of V1 control flow.
bool HasControlFlow(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CALL_INLINING_H_

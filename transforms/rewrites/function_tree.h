// The branches and loops of a graph as a tree in which every call has bodies of its own.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_TREE_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_TREE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "transforms/pass.h"
#include "transforms/rewrites/call_inlining.h"

namespace permafrost {

// Serves passes that specialise bodies: shapes, types and constants of the callers are then those of the body, and a
// change of the body affects one call. Function calls (PartitionedCall) in bodies are inlined.
//
//   PF_ASSIGN_OR_RETURN(FunctionTree tree, FunctionTree::Expand(graph, context));
//   PF_RETURN_IF_ERROR(tree.InferShapes());
//   for (FunctionTree::Body* body : tree.Bodies()) ... edit *body->graph ...
//   PF_RETURN_IF_ERROR(tree.Store());
class FunctionTree {
 public:
  struct Call;
  struct Body {
    Graph* graph = nullptr;
    std::unique_ptr<Graph> owned;  // Null for the root, whose graph belongs to the caller.
    std::string function;          // The name of the function that the body was made from.
    std::vector<Call> calls;       // In the order of the graph.
    // Functions that calls in the body name, if they are not those of the root.
    std::unique_ptr<FunctionLibrary> library;
    std::unique_ptr<CallInlining> inlining;
  };
  // If, While, Case and their stateless forms.
  struct Call {
    Node* node = nullptr;
    std::vector<std::unique_ptr<Body>>
        bodies;                          // Of a loop: condition, body. Of a branch: else, then. Of Case: by index.
    std::vector<Shape> inputs, outputs;  // Of the last inference.
    bool is_inferred = false;

    bool is_loop() const { return node->op() == ops::kWhile || node->op() == ops::kStatelessWhile; }
    // The data input of the node that is argument 0 of the bodies.
    int first_arg() const { return is_loop() ? 0 : 1; }
    int num_args() const { return node->num_data_inputs() - first_arg(); }
  };

  // Does not own its arguments, which must outlive the tree. Calls of functions that do not exist, cannot be inlined or
  // are nested too deep (recursion) are left out, with a miss. Returns ResourceExhausted if the bodies have too many
  // nodes, and DataLoss or InvalidArgument for a library that cannot be read.
  static absl::StatusOr<FunctionTree> Expand(Graph* graph, PassContext* context);

  Body& root() { return *root_; }
  bool has_calls() const { return !root_->calls.empty(); }
  // All bodies, the root first, callers before callees.
  std::vector<Body*> Bodies();
  // Makes the calls of a body anew from the functions that its nodes name, after nodes were removed or added. If the
  // graph of the body has a library, the functions are those of that library.
  absl::Status ExpandAgain(Body* body);

  // Sets kInferredShapesAttr on the calls of all bodies and on the _Arg nodes. A loop variable gets the shape that all
  // iterations have. Shapes stay unknown where shapes of a body cannot be inferred.
  absl::Status InferShapes();

  // Removes argument i from the call and its bodies; for a loop, also result i. Readers of output i then read the input
  // of the call. REQUIRES: no body reads the argument except for returning it as result i of a loop, and the call is no
  // endpoint of its graph.
  absl::Status RemoveArg(Body* caller, Call* call, int i);
  // Sets the attributes of the call's node with the types of its inputs and outputs from the arguments and results of
  // the bodies.
  static void SetTypes(Call* call);

  // Replaces the functions of the graph with the bodies. The tree must not be used afterwards.
  absl::Status Store();

 private:
  FunctionTree() = default;
  absl::Status ExpandIn(Body* body, int depth, CallInlining* inlining);
  absl::StatusOr<std::unique_ptr<Body>> MakeBody(const Node& node, const FunctionRef& function, CallInlining* inlining,
                                                 std::string* obstacle);
  absl::StatusOr<std::vector<Shape>> InferIn(Body* body, absl::Span<const Shape> args);
  absl::StatusOr<std::vector<Shape>> InferCall(Call* call, absl::Span<const Shape> args);

  PassContext* context_ = nullptr;
  std::unique_ptr<FunctionLibrary> functions_;
  std::unique_ptr<CallInlining> inlining_;
  std::unique_ptr<Body> root_;
  int64_t num_nodes_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_TREE_H_

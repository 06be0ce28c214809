// Replaces calls of functions with the bodies of the functions.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "transforms/pass.h"
#include "transforms/rewrites/call_inlining.h"

namespace permafrost {
namespace {

struct Params {
  bool stateful = true;
  bool prune_functions = false;
  int64_t max_nodes = 10'000'000;
};

// Notes calls of other kinds, and why they are not inlined.
void TellWhatStays(const Graph& graph, const Params& params, const FunctionLibrary& library, PassContext* context) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kStatefulPartitionedCall && !params.stateful) {
      context->MissIfWanted(*node, WayOut{"use stateful=true"}, "may have side effects");
    } else if (!node->op().is_known() && library.Find(node->op().name()) != nullptr) {
      context->MissIfWanted(*node, "calls the function that its op names, not one in attr 'f'");
    } else if (node->op() == ops::kStatelessIf || node->op() == ops::kIf || node->op() == ops::kStatelessWhile ||
               node->op() == ops::kWhile || node->op() == ops::kCase || node->op() == ops::kStatelessCase) {
      context->MissIfWanted(*node, WayOut{"run lower_control_flow"}, "decides which function runs");
    }
  }
}

absl::StatusOr<int64_t> Inline(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  const size_t nodes_before = graph->num_nodes();
  CallInlining inlining(library, {params.stateful, params.max_nodes}, context);
  PF_ASSIGN_OR_RETURN(const int64_t inlined, inlining.InlineCalls(graph));
  TellWhatStays(*graph, params, library, context);
  size_t pruned = 0;
  if (params.prune_functions && graph->first() != nullptr && context->AllowRewrite(*graph->first())) {
    PF_ASSIGN_OR_RETURN(const auto needed, library.Reachable(library.CalledBy(*graph)));
    pruned = library.Retain(needed);
    library.Store(graph);
  }
  if (inlined > 0) {
    context->Note(absl::StrCat("calls whose bodies take their place: ", inlined, "; nodes: ", graph->num_nodes(),
                               ", before ", nodes_before));
  }
  if (pruned > 0) context->Note(absl::StrCat("functions dropped from the library: ", pruned));
  return inlined + static_cast<int64_t>(pruned);
}

}  // namespace

// Replaces each PartitionedCall and StatefulPartitionedCall by the body of the called function, and repeats this for
// calls in the body.
//
//   y = Neg(call(x)), with f(a) = Relu(Abs(a))   =>   y = Neg(call/Relu(call/Abs(x)))
//
// Nodes of the body are named `<call>/<node>`, their attributes have the values given by the call, and loops get new
// frame names. Control edges from the call become control edges from the outputs and control outputs of the body. No
// node of the body except constants runs before the control inputs of the call. If reading an output must trigger
// another node (a Print in the body), an Identity with the name of the call enforces it. A call that is a declared
// output is also replaced by an Identity (or by an IdentityN if it has several outputs).
//
// Leaves unchanged calls that are declared inputs, and calls of functions in which outputs of an unknown op are read,
// because the output number of `n:name:0` is unknown without the definition of the op. A recursive function is an
// error.
DEFINE_PASS(inline_partitionedcall) {
  return Pass<Params>("Replaces function calls by the bodies of the functions.")
      .Why("Graphs exported by TensorFlow 2 consist mostly of calls, and other passes do not look into functions.")
      .Param("stateful", &Params::stateful, "Inline StatefulPartitionedCall as well as PartitionedCall.")
      .Param("prune_functions", &Params::prune_functions, "Remove the functions that are no longer called.")
      .Param("max_nodes", &Params::max_nodes,
             "Maximum number of nodes of the result; nested calls can expand a small file without limit, so more is an "
             "error.",
             AtLeast(1))
      .LooksFor({ops::kPartitionedCall, ops::kStatefulPartitionedCall})
      .Numerics(Exact())
      .Idempotent()
      .Run(Inline);
}

}  // namespace permafrost

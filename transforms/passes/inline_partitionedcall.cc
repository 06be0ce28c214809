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

// Puts the body of the called function in the place of each PartitionedCall and StatefulPartitionedCall, and so on for
// the calls in it.
//
//   y = Neg(call(x)), with f(a) = Relu(Abs(a))   =>   y = Neg(call/Relu(call/Abs(x)))
//
// Nodes of the body are named `<call>/<node>`, their attributes have the values that the call gives, loops get frames
// of their own. What waited for the call waits for all that it did; nothing of the body but constants runs before what
// the call waited for. Where reading an output must make something else happen (a Print in the body), an Identity of
// the call's name sees to it; one also stays in the place of a call that is a declared output (IdentityN if it has
// several outputs).
//
// Left alone: calls that are declared inputs, and calls of functions in which an op that is not known has outputs that
// are read, since only its definition says which output `n:name:0` is. A function that calls itself is an error.
DEFINE_PASS(inline_partitionedcall) {
  return Pass<Params>("Puts the bodies of functions in the place of the calls.")
      .Why("What TensorFlow 2 exports is mostly calls, behind which the other passes see nothing.")
      .Param("stateful", &Params::stateful, "Also StatefulPartitionedCall, not only PartitionedCall.")
      .Param("prune_functions", &Params::prune_functions, "Drop the functions that nothing calls any more.")
      .Param("max_nodes", &Params::max_nodes,
             "Calls of calls of calls can make any number of nodes of a small file: more than this is an error.",
             AtLeast(1))
      .LooksFor({ops::kPartitionedCall, ops::kStatefulPartitionedCall})
      .Numerics(Exact())
      .Idempotent()
      .Run(Inline);
}

}  // namespace permafrost

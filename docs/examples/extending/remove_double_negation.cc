// Removes pairs of Neg nodes.
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {
  bool keep_outputs = true;
};

enum { kInner, kValue };

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  const Pattern pattern =
      Pattern::OneOf({ops::kNeg})
          .Input(0, Pattern::OneOf({ops::kNeg}).As(kInner).Input(0, Pattern::Anything().AtAnyPort().As(kValue)));
  int64_t rewrites = 0;
  for (Node *outer = graph->first(), *next = nullptr; outer != nullptr; outer = next) {
    next = outer->next();
    Match match;
    NearMiss near_miss;
    if (!Matches(pattern, *outer, &match, &near_miss)) {
      if (!near_miss.reason.empty()) context->Miss(*outer, near_miss);
      continue;
    }
    if (graph->IsOutput(outer)) {
      context->MissIfWanted(*outer, "is an output of the graph");
      if (params.keep_outputs) continue;
    }
    // Every condition is checked; edits begin here.
    const RewriteScope rewrite(context, graph, {outer, match[kInner].node});
    if (!rewrite) continue;
    graph->ReplaceUses({outer, 0}, match[kValue]);
    ++rewrites;
  }
  return rewrites;
}

}  // namespace

// Replaces a value that is negated twice by the value itself.
//
//   Neg(Neg(x))   =>   x
//
// Neg nodes with other readers are kept; strip_unused_nodes removes the others. Leaves the outer Neg unchanged if it is
// an output of the graph.
DEFINE_PASS(remove_double_negation) {
  return Pass<Params>("Replaces Neg(Neg(x)) by x.")
      .Why("Exporters that write subtraction as addition of a negated value create such pairs.")
      .Param("keep_outputs", &Params::keep_outputs, "Keep a Neg that is an output of the graph.")
      .Numerics(Exact())
      .Idempotent()
      .LooksFor({ops::kNeg})
      .Run(Remove);
}

}  // namespace permafrost

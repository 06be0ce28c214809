// Replaces the moving averages of fake-quantisation ranges by their frozen values.
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

enum { kAverage, kExtreme };

// Returns the pattern that TensorFlow's quantised training leaves for one end of a range, once the variable of the
// average is a constant: Assign(average, Merge(Switch(extreme, IsVariableInitialized), Sub(Const, Mul(Sub, Sub(Const,
// Const))))).
Pattern MovingAverage(Op extreme) {
  Pattern first = Pattern::OneOf({ops::kSwitch})
                      .AtAnyPort()
                      .Input(0, Pattern::OneOf({extreme}).As(kExtreme))
                      .Input(1, Pattern::OneOf({ops::kIsVariableInitialized}));
  Pattern decay =
      Pattern::OneOf({ops::kSub}).Input(0, Pattern::OneOf({ops::kConst})).Input(1, Pattern::OneOf({ops::kConst}));
  Pattern change = Pattern::OneOf({ops::kMul}).Input(0, Pattern::OneOf({ops::kSub})).Input(1, std::move(decay));
  Pattern later = Pattern::OneOf({ops::kSub}).Input(0, Pattern::OneOf({ops::kConst})).Input(1, std::move(change));
  return Pattern::OneOf({ops::kAssign})
      .Input(0, Pattern::OneOf({ops::kConst}).As(kAverage))
      .Input(1, Pattern::OneOf({ops::kMerge}).Input(0, std::move(first)).Input(1, std::move(later)));
}

// Assign to a constant has no effect; Switch and Merge are removed with it.
bool MayGo(const Node& node) {
  const Op op = node.op();
  return op == ops::kAssign || op == ops::kIsVariableInitialized || op == ops::kSwitch || op == ops::kMerge ||
         MayGoUnread(node);
}

absl::StatusOr<int64_t> Remove(Graph* graph, const NoParams&, PassContext* context) {
  const Pattern averages[] = {MovingAverage(ops::kMin), MovingAverage(ops::kMax)};
  std::vector<Node*> no_longer_read;
  int64_t rewritten = 0, seen = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kFakeQuantWithMinMaxVars || node->num_data_inputs() != 3) continue;
    ++seen;
    TensorRef frozen[2];
    std::string near_miss;
    bool matches = true;
    for (int end = 0; end < 2 && matches; ++end) {
      Match match;
      const TensorRef input = node->input(1 + end);
      matches =
          input.port == 0 && Matches(averages[end], *input.node, &match, context->wants_misses ? &near_miss : nullptr);
      if (matches) frozen[end] = match[kAverage];
    }
    if (!matches) {
      context->MissIfWanted(*node, "its range is not a moving average of Min and Max with a constant average",
                            near_miss.empty() ? "" : ": ", near_miss,
                            "; freeze the graph first, so that the averages are constants");
      continue;
    }
    const RewriteScope rewrite(context, graph, {node, node->input(1).node, node->input(2).node});
    if (!rewrite) continue;
    for (int end = 0; end < 2; ++end) {
      no_longer_read.push_back(node->input(1 + end).node);
      graph->SetInput(node, 1 + end, frozen[end]);
    }
    ++rewritten;
  }
  if (rewritten == 0) {
    context->NoteAbsent(seen == 0 ? "no node has the op 'FakeQuantWithMinMaxVars'"
                                  : "no FakeQuantWithMinMaxVars reads moving averages");
    return 0;
  }
  PF_ASSIGN_OR_RETURN(const int64_t removed, RemoveUnread(graph, std::move(no_longer_read), MayGo));
  context->Note(absl::StrCat("replaced ", 2 * rewritten, " moving averages by constants, removed ", removed, " nodes"));
  return rewritten + removed;
}

}  // namespace

// Cleans up a frozen graph after quantisation-aware training: fake quantisation ops read the frozen moving averages of
// their ranges directly, and the nodes that updated the averages are removed.
//
//   FakeQuantWithMinMaxVars(x, Assign(min, average of Min), Assign(max, average of Max))
//     =>   FakeQuantWithMinMaxVars(x, Const min, Const max)
//
// Leaves nodes unchanged if the averages are still variables, or if other nodes read the nodes to be removed.
DEFINE_PASS(remove_ema) {
  return Pass<NoParams>("Replaces the moving averages that feed fake quantisation by their frozen values.")
      .Why("Fake quantisation that still updates its ranges changes its outputs from run to run.")
      .Numerics(Changes("ranges are those at the end of the training, not of the batch"))
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost

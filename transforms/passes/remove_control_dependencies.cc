// Removes control edges.
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {
  bool keep_stateful = false;
};

// Ops that nothing is known of may have state.
bool HasState(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  return schema == nullptr || schema->Is(kStateful | kHasSideEffect);
}

bool HasControlFlow(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const OpSchema* schema = FindSchema(node->op());
    if (schema != nullptr && schema->Is(kControlFlow)) return true;
  }
  return false;
}

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  const bool has_control_flow = HasControlFlow(*graph);
  int64_t removed = 0, kept = 0, unframed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->num_inputs() == node->num_data_inputs()) continue;
    // What has no other inputs runs in the loop or the branch from which a control edge comes.
    const bool is_held = has_control_flow && node->num_data_inputs() == 0;
    const bool is_stateful = params.keep_stateful && HasState(*node);
    std::vector<Node*> stay;
    for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) {
      Node* producer = node->input(i).node;
      if (params.keep_stateful && (is_held || is_stateful || HasState(*producer))) stay.push_back(producer);
    }
    const int64_t num_controls = node->num_inputs() - node->num_data_inputs();
    const int64_t num_kept = static_cast<int64_t>(stay.size());
    kept += num_kept;
    if (num_kept == num_controls || !context->AllowRewrite(*node)) continue;
    removed += num_controls - num_kept;
    while (node->num_inputs() > node->num_data_inputs()) graph->RemoveInput(node, node->num_inputs() - 1);
    for (Node* producer : stay) graph->AddInput(node, {producer, kControlPort});
    if (node->num_inputs() > 0) continue;
    if (is_held) ++unframed;
    if (node->op() == ops::kNoOp && graph->IsOutput(node)) {
      context->Note(absl::StrCat("the output '", node->name(), "' (NoOp) runs nothing any more"));
    }
  }
  if (kept > 0) context->Note(absl::StrCat("kept ", kept, " control edges"));
  context->Note(removed == 0 ? std::string("removed no control edge")
                             : absl::StrCat("removed ", removed, " control edges"));
  if (unframed > 0) {
    context->Note(absl::StrCat(unframed,
                               " nodes without inputs are not held in a loop or branch any more, which TensorFlow may "
                               "refuse to run; keep_stateful=true keeps these edges"));
  }
  return removed;
}

}  // namespace

// Removes all control edges: what only had to happen before, and gave no data.
//
//   MatMul(x, w, ^assert, ^log)   =>   MatMul(x, w)
//
// Nothing waits for assertions, prints, assignments and initialisers any more, and a NoOp that groups them groups
// nothing. With keep_stateful, the edges from and to ops that have state or side effects, or that nothing is known of,
// stay, and so do those that hold a node without other inputs in a loop or a branch.
DEFINE_PASS(remove_control_dependencies) {
  return Pass<Params>("Removes control edges.")
      .Why(
          "In a model that only answers, nothing has to wait for what it does not read, and other passes leave alone "
          "what others wait for.")
      .Param("keep_stateful", &Params::keep_stateful, "Keep the edges from and to ops with state or side effects.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost

// Removes control edges.
#include <vector>

#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {
  bool keep_stateful = false;
};

// Unknown ops may have state.
bool HasState(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  return schema == nullptr || schema->Is(kStateful | kHasSideEffect);
}

// Returns true if the completion of the node has an effect beyond its outputs: it has side effects, or may be dead.
bool Acts(const Node& node) {
  if (node.op() == ops::kNoOp || node.op() == ops::kPlaceholder || node.op() == ops::kPlaceholderV2 ||
      node.op() == ops::kPlaceholderWithDefault) {
    return false;
  }
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr || schema->Is(kHasSideEffect | kControlFlow)) return true;
  return schema->Is(kStateful) && !schema->Is(kRandom);
}

// Returns by node id whether the node, or any node that runs before it, acts. A control edge from any other node has no
// effect on order.
std::vector<bool> FindWhatActs(const Graph& graph) {
  std::vector<bool> acts(graph.id_limit(), false);
  std::vector<const Node*> open;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!Acts(*node)) continue;
    acts[node->id()] = true;
    open.push_back(node);
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Use& use : node->uses()) {
      if (acts[use.consumer->id()]) continue;
      acts[use.consumer->id()] = true;
      open.push_back(use.consumer);
    }
  }
  return acts;
}

// Returns by node id whether the node is a NoOp that a caller may run for its control inputs: an endpoint, or one
// without readers.
std::vector<bool> FindTargets(const Graph& graph) {
  std::vector<bool> targets(graph.id_limit(), false);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    targets[node->id()] = node->op() == ops::kNoOp && (node->uses().empty() || graph.IsEndpoint(node));
  }
  return targets;
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
  const std::vector<bool> acts = params.keep_stateful ? FindWhatActs(*graph) : std::vector<bool>();
  // Found before any edit: the removal of an edge can take the last reader of a NoOp away.
  const std::vector<bool> targets = FindTargets(*graph);
  int64_t removed = 0, kept = 0, unframed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->num_inputs() == node->num_data_inputs()) continue;
    // A node without data inputs runs in the loop or branch of its control inputs.
    const bool is_held = has_control_flow && node->num_data_inputs() == 0;
    // A NoOp that is no target only passes its edges on.
    const bool is_group = node->op() == ops::kNoOp;
    const bool is_stateful = targets[node->id()] || (!is_group && HasState(*node));
    std::vector<Node*> stay;
    for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) {
      Node* producer = node->input(i).node;
      if (params.keep_stateful && (is_held || is_stateful || acts[producer->id()])) stay.push_back(producer);
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
  if (removed == 0) {
    context->NoteAbsent("removed no control edge");
  } else {
    context->Note(absl::StrCat("removed ", removed, " control edges"));
  }
  if (unframed > 0) {
    context->Note(absl::StrCat(unframed,
                               " nodes without inputs are not held in a loop or branch any more, which TensorFlow may "
                               "refuse to run; keep_stateful=true keeps these edges"));
  }
  return removed;
}

}  // namespace

// Removes all control edges, which only order nodes and carry no data.
//
//   MatMul(x, w, ^assert, ^log)   =>   MatMul(x, w)
//
// Assertions, prints, assignments and initialisers are no longer triggered, and a NoOp that groups nodes becomes empty.
// With keep_stateful=true, only redundant edges are removed: edges from a node without state or side effects, whose
// ancestors have none either, and which is not in a branch or a loop.
//
//   y(x, ^NoOp(^moving_mean, ^moving_variance))   =>   y(x)
//
// With keep_stateful=true the pass also keeps edges to ops that have state or side effects or are unknown, edges that
// place a node without other inputs in a loop or a branch, and edges to a NoOp that is an output or has no readers.
DEFINE_PASS(remove_control_dependencies) {
  return Pass<Params>("Removes control edges.")
      .Why(
          "Inference does not need to wait for nodes whose outputs it does not read, and other passes skip nodes with "
          "control edges.")
      .Param("keep_stateful", &Params::keep_stateful, "Keep the edges that order ops with state or side effects.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost

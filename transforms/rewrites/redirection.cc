// Rebuilds the inputs of one node in a single walk over them.
#include "transforms/rewrites/redirection.h"

#include <vector>

#include "absl/container/flat_hash_set.h"

namespace permafrost {

bool RedirectInputs(Graph* graph, Node* node, Redirect redirect, absl::Span<Node* const> more_controls) {
  bool changed = !more_controls.empty();
  for (int i = 0; i < node->num_data_inputs(); ++i) {
    const TensorRef from = node->input(i);
    const TensorRef to = redirect(from);
    if (from == to) continue;
    graph->SetInput(node, i, to);
    changed = true;
  }
  std::vector<Node*> controls;
  for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) {
    controls.push_back(redirect(node->input(i)).node);
    changed |= controls.back() != node->input(i).node;
  }
  if (!changed || controls.size() + more_controls.size() == 0) return changed;

  controls.insert(controls.end(), more_controls.begin(), more_controls.end());
  absl::flat_hash_set<const Node*> waited_for = {node};
  if (node->op() != ops::kMerge && node->op() != ops::kRefMerge) {
    for (int i = 0; i < node->num_data_inputs(); ++i) waited_for.insert(node->input(i).node);
  }
  std::vector<Node*> kept;
  for (Node* producer : controls) {
    if (waited_for.insert(producer).second) kept.push_back(producer);
  }
  while (node->num_inputs() > node->num_data_inputs()) graph->RemoveInput(node, node->num_inputs() - 1);
  for (Node* producer : kept) graph->AddInput(node, {producer, kControlPort});
  return true;
}

}  // namespace permafrost

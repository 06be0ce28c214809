// Implements topological orders and reachability without recursion, so that a chain of a million nodes does not
// overflow the stack.
#include "graph/analysis/order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace permafrost {
namespace {

// True if the node runs as soon as one of its data inputs has arrived.
bool WaitsForOne(const Node& node) { return node.op() == ops::kMerge || node.op() == ops::kRefMerge; }

// Returns the number of inputs that must be computed before the node can run.
uint32_t PendingInputs(const Node& node) {
  if (!WaitsForOne(node) || node.num_data_inputs() == 0) return static_cast<uint32_t>(node.num_inputs());
  return static_cast<uint32_t>(node.num_inputs() - node.num_data_inputs() + 1);
}

// Identifies the data inputs of a Merge after the first one to arrive. They must not be counted as control inputs.
class MergeInputs {
 public:
  explicit MergeInputs(const Graph& graph) : served_(graph.id_limit(), false) {}

  bool Counts(const Use& use) {
    if (!WaitsForOne(*use.consumer) || use.consumer->input(static_cast<int>(use.index)).is_control()) return true;
    if (served_[use.consumer->id()]) return false;
    served_[use.consumer->id()] = true;
    return true;
  }

 private:
  std::vector<bool> served_;  // By node id.
};

// Returns an error that names a cycle among the nodes that never became ready. It is found by following unready inputs.
absl::Status CycleError(const Graph& graph, const std::vector<uint32_t>& pending, size_t left) {
  constexpr size_t kMostNames = 8;
  std::vector<uint32_t> step(graph.id_limit(), 0);
  const Node* at = graph.first();
  while (pending[at->id()] == 0) at = at->next();
  std::vector<const Node*> path;
  while (step[at->id()] == 0) {
    path.push_back(at);
    step[at->id()] = static_cast<uint32_t>(path.size());
    for (int i = 0; i < at->num_inputs(); ++i) {
      const Node* producer = at->input(i).node;
      if (pending[producer->id()] != 0) {
        at = producer;
        break;
      }
    }
  }
  path.erase(path.begin(), path.begin() + step[at->id()] - 1);
  std::reverse(path.begin(), path.end());  // The walk followed edges backwards.
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < path.size() && i < kMostNames; ++i) names.push_back(path[i]->name());
  return absl::InvalidArgumentError(absl::StrCat(
      left, " nodes in a cycle or behind one; the cycle has ", path.size(), path.size() == 1 ? " node: " : " nodes: ",
      absl::StrJoin(names, " -> "), path.size() > kMostNames ? " -> ..." : ""));
}

// Runs Kahn's algorithm; Ready chooses the next of the ready nodes.
template <typename Ready>
absl::StatusOr<std::vector<Node*>> Sort(const Graph& graph, Ready ready) {
  std::vector<uint32_t> pending(graph.id_limit(), 0);
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    pending[node->id()] = PendingInputs(*node);
    if (pending[node->id()] == 0) ready.Push(node);
  }
  std::vector<Node*> order;
  order.reserve(graph.num_nodes());
  std::vector<std::pair<uint32_t, Node*>> consumers;
  while (!ready.Empty()) {
    Node* node = ready.Pop();
    order.push_back(node);
    ready.SortUses(*node, &consumers);
    for (const auto& [position, consumer] : consumers) {
      if (pending[consumer->id()] > 0 && --pending[consumer->id()] == 0) ready.Push(consumer);
    }
  }
  if (order.size() != graph.num_nodes()) return CycleError(graph, pending, graph.num_nodes() - order.size());
  return order;
}

// Returns the position in the file by node id.
std::vector<uint32_t> FilePositions(const Graph& graph) {
  std::vector<uint32_t> positions(graph.id_limit(), 0);
  uint32_t position = 0;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) positions[node->id()] = position++;
  return positions;
}

class FirstInFile {
 public:
  explicit FirstInFile(const Graph& graph) : positions_(FilePositions(graph)), merge_inputs_(graph) {}
  void Push(Node* node) { queue_.push({positions_[node->id()], node}); }
  bool Empty() const { return queue_.empty(); }
  Node* Pop() {
    Node* node = queue_.top().second;
    queue_.pop();
    return node;
  }
  void SortUses(const Node& node, std::vector<std::pair<uint32_t, Node*>>* consumers) {
    consumers->clear();
    for (const Use& use : node.uses()) {
      if (merge_inputs_.Counts(use)) consumers->emplace_back(0, use.consumer);
    }
  }

 private:
  using Entry = std::pair<uint32_t, Node*>;
  std::vector<uint32_t> positions_;
  MergeInputs merge_inputs_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
};

class LastReady {
 public:
  explicit LastReady(const Graph& graph) : positions_(FilePositions(graph)) {}
  void Push(Node* node) { stack_.push_back(node); }
  bool Empty() const { return stack_.empty(); }
  Node* Pop() {
    Node* node = stack_.back();
    stack_.pop_back();
    return node;
  }
  // Consumers come in file order, as in the original tool, which collected edges by scanning the file. The original
  // also counted every data input of a Merge, so a second one could satisfy a control input; this order does the same.
  void SortUses(const Node& node, std::vector<std::pair<uint32_t, Node*>>* consumers) const {
    consumers->clear();
    for (const Use& use : node.uses()) consumers->emplace_back(positions_[use.consumer->id()], use.consumer);
    std::sort(consumers->begin(), consumers->end());
  }

 private:
  std::vector<uint32_t> positions_;
  std::vector<Node*> stack_;
};

}  // namespace

absl::StatusOr<std::vector<Node*>> StableTopologicalOrder(const Graph& graph) {
  return Sort(graph, FirstInFile(graph));
}

absl::StatusOr<std::vector<Node*>> StackTopologicalOrder(const Graph& graph) { return Sort(graph, LastReady(graph)); }

absl::Status CheckAcyclic(const Graph& graph) {
  std::vector<uint32_t> pending(graph.id_limit(), 0);
  std::vector<const Node*> ready;
  MergeInputs merge_inputs(graph);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    pending[node->id()] = PendingInputs(*node);
    if (pending[node->id()] == 0) ready.push_back(node);
  }
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    const Node* node = ready.back();
    ready.pop_back();
    for (const Use& use : node->uses()) {
      if (!merge_inputs.Counts(use)) continue;
      uint32_t& left = pending[use.consumer->id()];
      if (left > 0 && --left == 0) ready.push_back(use.consumer);
    }
  }
  return done == graph.num_nodes() ? absl::OkStatus() : CycleError(graph, pending, graph.num_nodes() - done);
}

std::vector<bool> ReachedBackwards(const Graph& graph, const std::vector<Node*>& roots, const std::vector<bool>& stop) {
  std::vector<bool> reached(graph.id_limit(), false);
  std::vector<Node*> open;
  const auto visit = [&](Node* node) {
    if (reached[node->id()]) return;
    reached[node->id()] = true;
    open.push_back(node);
  };
  for (Node* root : roots) visit(root);
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (!stop.empty() && stop[node->id()]) continue;
    for (int i = 0; i < node->num_inputs(); ++i) visit(node->input(i).node);
  }
  return reached;
}

}  // namespace permafrost

// Computes the lifetimes of tensors.
#include "tools/measuring/memory_timeline.h"

#include <algorithm>
#include <map>

#include "absl/status/statusor.h"
#include "graph/analysis/order.h"

namespace permafrost {
namespace {

const ProfileLabel& LabelOf(const Profiler& profiler, const ProfileEvent& event) {
  return profiler.labels()[static_cast<size_t>(event.label)];
}

// Returns the graph's node of an event; null for partitions and for events in functions.
const Node* NodeOf(const ProfileLabel& label, const Graph& graph) {
  if (!label.function.empty() || label.kind == ProfileLabel::Kind::kPartition) return nullptr;
  return graph.Find(label.kind == ProfileLabel::Kind::kPiece ? NodeOfPiece(label.name) : absl::string_view(label.name));
}

// Returns the changes of live bytes by time. A tensor lives from the end of its producer to the end of its last reader.
// If a reader is fused into another node, the readers of the fused node count.
std::map<int64_t, int64_t> MemoryChanges(const Profiler& profiler, const ProfileRun& run, const Graph& graph,
                                         const NodeCosts& costs) {
  std::map<int64_t, int64_t> changes;
  absl::StatusOr<std::vector<Node*>> order = StableTopologicalOrder(graph);
  if (!order.ok()) return changes;  // Control flow: the graph does not determine lifetimes.
  std::vector<const ProfileEvent*> ran(graph.id_limit(), nullptr);
  for (const ProfileEvent& event : run.events) {
    if (const Node* node = NodeOf(LabelOf(profiler, event), graph); node != nullptr) ran[node->id()] = &event;
  }
  std::vector<int64_t> last_read(graph.id_limit(), 0);
  for (auto node = order->rbegin(); node != order->rend(); ++node) {
    int64_t& last = last_read[(*node)->id()];
    if (graph.IsOutput(*node)) last = run.end_ns;
    for (const Use& use : (*node)->uses()) {
      const uint32_t reader = use.consumer->id();
      last = std::max(last, ran[reader] != nullptr ? ran[reader]->end_ns : last_read[reader]);
    }
    const ProfileEvent* event = ran[(*node)->id()];
    if (event == nullptr) continue;
    const NodeCost* cost = costs.Find(LabelOf(profiler, *event));
    const int64_t bytes =
        event->output_bytes > 0 || cost == nullptr ? event->output_bytes : static_cast<int64_t>(cost->output_bytes);
    if (bytes == 0) continue;
    changes[event->start_ns] += bytes;
    changes[std::max(last, event->end_ns)] -= bytes;
  }
  return changes;
}

}  // namespace

std::vector<MemoryPoint> LivingBytes(const Profiler& profiler, const ProfileRun& run, const Graph& graph,
                                     const NodeCosts& costs) {
  std::vector<MemoryPoint> points;
  int64_t living = 0;
  for (const auto& [time_ns, change] : MemoryChanges(profiler, run, graph, costs)) {
    living += change;
    points.push_back({time_ns - run.start_ns, living});
  }
  return points;
}

}  // namespace permafrost

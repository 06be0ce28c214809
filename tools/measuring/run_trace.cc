// Writes events, and works out when tensors die.
#include "tools/measuring/run_trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/order.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

constexpr int64_t kProcess = 1;
constexpr double kNanosecondsInMicrosecond = 1000;

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / kNanosecondsInMicrosecond; }

// One event of the phases "X" (complete), "C" (counter) or "M" (a name); its arguments follow, and two calls of End.
JsonWriter& BeginEvent(absl::string_view phase, absl::string_view name, int64_t thread, JsonWriter* json) {
  json->BeginObject();
  json->Key("ph").Text(phase);
  json->Key("name").Text(name);
  json->Key("pid").Integer(kProcess);
  json->Key("tid").Integer(thread);
  return *json;
}

void WriteName(absl::string_view what, int64_t thread, absl::string_view name, JsonWriter* json) {
  BeginEvent("M", what, thread, json).Key("args").BeginObject().Key("name").Text(name).End().End();
}

const ProfileLabel& LabelOf(const Profiler& profiler, const ProfileEvent& event) {
  return profiler.labels()[static_cast<size_t>(event.label)];
}

// The node of the graph itself that an event is about; null for partitions and what lies in functions.
const Node* NodeOf(const ProfileLabel& label, const Graph& graph) {
  if (!label.function.empty() || label.kind == ProfileLabel::Kind::kPartition) return nullptr;
  return graph.Find(label.kind == ProfileLabel::Kind::kPiece ? NodeOfPiece(label.name) : absl::string_view(label.name));
}

void WriteEvents(const Profiler& profiler, const ProfileRun& run, const NodeCosts& costs, JsonWriter* json) {
  for (const ProfileEvent& event : run.events) {
    const ProfileLabel& label = LabelOf(profiler, event);
    const NodeCost* cost = costs.Find(label);
    BeginEvent("X", label.name, 0, json);
    json->Key("cat").Text(label.kind == ProfileLabel::Kind::kNode        ? "node"
                          : label.kind == ProfileLabel::Kind::kPartition ? "partition"
                                                                         : "piece");
    json->Key("ts").Number(Microseconds(event.start_ns - run.start_ns));
    json->Key("dur").Number(Microseconds(event.end_ns - event.start_ns));
    json->Key("args").BeginObject();
    json->Key("op").Text(label.kind == ProfileLabel::Kind::kPiece && cost != nullptr ? cost->op : label.op);
    json->Key("delegate").Text(label.kind == ProfileLabel::Kind::kNode ? "reference" : label.op);
    if (!label.function.empty()) json->Key("function").Text(label.function);
    json->Key("output_bytes")
        .Integer(event.output_bytes > 0 || cost == nullptr ? event.output_bytes
                                                           : static_cast<int64_t>(cost->output_bytes));
    if (cost != nullptr && cost->flops > 0) json->Key("flops").Count(cost->flops);
    json->End().End();
  }
}

// By time, by how much the bytes of living tensors change. A tensor lives from the end of the node that makes it to
// that of the last that reads it; one that is read by nodes that are fused into others, by what reads those.
std::map<int64_t, int64_t> MemoryChanges(const Profiler& profiler, const ProfileRun& run, const Graph& graph,
                                         const NodeCosts& costs) {
  std::map<int64_t, int64_t> changes;
  absl::StatusOr<std::vector<Node*>> order = StableTopologicalOrder(graph);
  if (!order.ok()) return changes;  // Control flow: what lives when is not in the graph.
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

void WriteTrace(const Profiler& profiler, const Graph& graph, const NodeCosts& costs, const std::string& model,
                std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("displayTimeUnit").Text("ms");
  json.Key("traceEvents").BeginArray();
  const std::vector<ProfileRun> runs = profiler.runs();
  WriteName("process_name", 0, model, &json);
  WriteName("thread_name", 0, "session", &json);
  if (!runs.empty()) {
    const ProfileRun& run = runs.back();
    BeginEvent("X", "run", 0, &json);
    json.Key("cat").Text("run");
    json.Key("ts").Number(0);
    json.Key("dur").Number(Microseconds(run.end_ns - run.start_ns));
    json.End();
    WriteEvents(profiler, run, costs, &json);
    int64_t living = 0;
    for (const auto& [time_ns, change] : MemoryChanges(profiler, run, graph, costs)) {
      living += change;
      BeginEvent("C", "tensors", 0, &json);
      json.Key("ts").Number(Microseconds(time_ns - run.start_ns));
      json.Key("args").BeginObject().Key("bytes").Integer(living).End().End();
    }
  }
  json.End().End();
}

}  // namespace permafrost

// Writes trace events.
#include "tools/measuring/run_trace.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/delegate_options.h"
#include "tools/command_line/json.h"
#include "tools/measuring/memory_timeline.h"

namespace permafrost {
namespace {

constexpr int64_t kProcess = 1;
constexpr double kNanosecondsInMicrosecond = 1000;

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / kNanosecondsInMicrosecond; }

// Begins an event of phase "X" (complete), "C" (counter) or "M" (a name). The caller adds its arguments and calls End
// twice.
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
    json->Key("delegate").Text(label.kind == ProfileLabel::Kind::kNode ? kReferenceDelegate : label.op);
    if (!label.function.empty()) json->Key("function").Text(label.function);
    json->Key("output_bytes")
        .Integer(event.output_bytes > 0 || cost == nullptr ? event.output_bytes
                                                           : static_cast<int64_t>(cost->output_bytes));
    if (cost != nullptr && cost->flops > 0) json->Key("flops").Count(cost->flops);
    json->End().End();
  }
}

// Returns the innermost node or piece that ran at a time, or null. `leaves` are sorted by start and do not overlap.
const ProfileEvent* EventAt(const std::vector<const ProfileEvent*>& leaves, int64_t time_ns) {
  const auto after = std::upper_bound(leaves.begin(), leaves.end(), time_ns,
                                      [](int64_t time, const ProfileEvent* event) { return time < event->start_ns; });
  if (after == leaves.begin() || (*std::prev(after))->end_ns < time_ns) return nullptr;
  return *std::prev(after);
}

// Writes the work of the threads other than the session's, whose pieces are already nested in its nodes.
void WriteThreads(const Profiler& profiler, const ProfileRun& run, absl::Span<const ThreadWork> work,
                  JsonWriter* json) {
  // An event comes after the events nested in it, so an event without nested ones follows no deeper event.
  std::vector<const ProfileEvent*> leaves;
  int32_t depth_before = -1;
  for (const ProfileEvent& event : run.events) {
    if (event.depth >= depth_before) leaves.push_back(&event);
    depth_before = event.depth;
  }
  std::sort(leaves.begin(), leaves.end(),
            [](const ProfileEvent* a, const ProfileEvent* b) { return a->start_ns < b->start_ns; });
  std::set<int> threads;
  for (const ThreadWork& each : work) {
    if (each.thread == 0 || each.start_ns < run.start_ns || each.end_ns > run.end_ns) continue;
    threads.insert(each.thread);
    const ProfileEvent* event = EventAt(leaves, each.start_ns);
    BeginEvent("X", event == nullptr ? "work" : LabelOf(profiler, *event).name, each.thread, json);
    json->Key("cat").Text("thread");
    json->Key("ts").Number(Microseconds(each.start_ns - run.start_ns));
    json->Key("dur").Number(Microseconds(each.end_ns - each.start_ns));
    json->End();
  }
  for (const int thread : threads) WriteName("thread_name", thread, absl::StrCat("worker ", thread), json);
}

}  // namespace

void WriteTrace(const Profiler& profiler, absl::Span<const ThreadWork> work, const Graph& graph, const NodeCosts& costs,
                const std::string& model, std::ostream& out) {
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
    WriteThreads(profiler, run, work, &json);
    for (const MemoryPoint& point : LivingBytes(profiler, run, graph, costs)) {
      BeginEvent("C", "tensors", 0, &json);
      json.Key("ts").Number(Microseconds(point.time_ns));
      json.Key("args").BeginObject().Key("bytes").Integer(point.bytes).End().End();
    }
  }
  json.End().End();
}

}  // namespace permafrost

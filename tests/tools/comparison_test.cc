// Tests of contests between functions of known speed, baselines, rooflines and traces.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/json_value.h"
#include "runtime_check/session.h"
#include "runtime_check/threads/thread_activity.h"
#include "runtime_check/threads/thread_pool.h"
#include "tests/tools/graph_from_text.h"
#include "tools/measuring/background_load.h"
#include "tools/measuring/benchmark_baseline.h"
#include "tools/measuring/hardware_counters.h"
#include "tools/measuring/interleaved_runs.h"
#include "tools/measuring/machine_peaks.h"
#include "tools/measuring/roofline.h"
#include "tools/measuring/run_trace.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

Contestant Sleeper(const std::string& name, int microseconds) {
  return {name, [microseconds] {
            std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
            return absl::OkStatus();
          }};
}

ContestLimits Quick() {
  ContestLimits limits;
  limits.turn_seconds = limits.warmup_seconds = 0.001;
  limits.max_seconds = 5;
  return limits;
}

TEST(InterleavedRunsTest, FindsTheFastestAndDropsTheHopeless) {
  const std::vector<Contestant> contestants = {Sleeper("slow", 20000), Sleeper("fast", 1000), Sleeper("middle", 6000)};
  int rounds = 0;
  const std::vector<ContestResult> results = RunInterleaved(contestants, Quick(), [&](int) { ++rounds; });
  EXPECT_EQ(FastestOf(results, [](int) { return true; }), 1);
  EXPECT_EQ(FastestOf(results, [](int i) { return i != 1; }), 2);
  EXPECT_TRUE(results[0].was_dropped);
  EXPECT_FALSE(results[1].was_dropped);
  EXPECT_GE(rounds, 6);
  const Sample ratio = RatioOf(results[0], results[1]);
  EXPECT_GT(ratio.MedianInterval().low, 2);
  EXPECT_TRUE(std::isnan(results[0].rounds.back()));
}

TEST(InterleavedRunsTest, ADisturbanceAtTheStartDecidesNothing) {
  ContestLimits limits = Quick();
  limits.max_rounds = 1000000;
  const auto start = std::chrono::steady_clock::now();
  const Contestant disturbed = {"disturbed", [start] {
                                  const bool is_over =
                                      std::chrono::steady_clock::now() - start > std::chrono::milliseconds(300);
                                  std::this_thread::sleep_for(std::chrono::milliseconds(is_over ? 1 : 9));
                                  return absl::OkStatus();
                                }};
  const std::vector<ContestResult> results = RunInterleaved({disturbed, Sleeper("steady", 4000)}, limits, [](int) {});
  EXPECT_FALSE(results[0].was_dropped);
  EXPECT_EQ(FastestOf(results, [](int) { return true; }), 0);
}

// Two threads behave like this if each waits for the other while another process occupies one of two cores.
TEST(InterleavedRunsTest, ALongDisturbanceIsForgiven) {
  ContestLimits limits = Quick();
  limits.max_rounds = 1000000;
  const auto start = std::chrono::steady_clock::now();
  const Contestant disturbed = {"disturbed", [start] {
                                  const bool is_over =
                                      std::chrono::steady_clock::now() - start > std::chrono::milliseconds(600);
                                  std::this_thread::sleep_for(std::chrono::milliseconds(is_over ? 1 : 25));
                                  return absl::OkStatus();
                                }};
  const std::vector<ContestResult> results = RunInterleaved({disturbed, Sleeper("steady", 4000)}, limits, [](int) {});
  EXPECT_FALSE(results[0].was_dropped);
  EXPECT_EQ(FastestOf(results, [](int) { return true; }), 0);
}

TEST(InterleavedRunsTest, KeepsAnErrorToItself) {
  const std::vector<Contestant> contestants = {{"broken", [] { return absl::InternalError("no"); }},
                                               Sleeper("works", 500)};
  const std::vector<ContestResult> results = RunInterleaved(contestants, Quick(), [](int) {});
  EXPECT_FALSE(results[0].status.ok());
  EXPECT_TRUE(results[1].status.ok());
  EXPECT_EQ(FastestOf(results, [](int) { return true; }), 1);
  EXPECT_EQ(FastestOf({}, [](int) { return true; }), -1);
}

TEST(InterleavedRunsTest, EndsWhenTimeIsUp) {
  ContestLimits limits = Quick();
  limits.max_seconds = 0.01;
  limits.max_rounds = 1000000;
  int rounds = 0;
  RunInterleaved({Sleeper("a", 1000), Sleeper("b", 1000)}, limits, [&](int) { ++rounds; });
  EXPECT_LE(rounds, 12);
}

TEST(BaselineTest, OnlyWhatIsSurelySlowerIsARegression) {
  Baseline baseline;
  baseline.median_seconds = 1;
  baseline.median = {0.9, 1.1};
  const auto sample = [](double center, double spread) {
    std::vector<double> values;
    for (int i = 0; i < 21; ++i) values.push_back(center + spread * (i - 10) / 10);
    return Sample(values);
  };
  EXPECT_TRUE(CompareWithBaseline(baseline, sample(1.3, 0.1), 0.05).is_regression);
  EXPECT_FALSE(CompareWithBaseline(baseline, sample(1.3, 0.1), 0.5).is_regression);
  EXPECT_FALSE(CompareWithBaseline(baseline, sample(1.08, 0.05), 0.05).is_regression);
  EXPECT_FALSE(CompareWithBaseline(baseline, sample(1.3, 1.2), 0.05).is_regression);
  EXPECT_EQ(CompareWithBaseline(baseline, sample(0.5, 0), 0.05).ratio, 0.5);
}

TEST(RooflineTest, DividesCostsByTimes) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\ny = Relu(x)\n");
  const NodeCosts costs(*graph, {});
  Profiler profiler(1000, Profiler::Clock::kSteady);
  ProfileSummary summary;
  profiler.BeginRun();
  ProfileTicket ticket;
  profiler.Name(*graph->Find("y"), false, &ticket);
  profiler.Enter();
  profiler.Leave(ticket, Profiler::NowNanoseconds() - 1000000, 8);
  profiler.EndRun();
  summary.Add(profiler);
  MachinePeaks peaks;
  peaks.flops_per_second = 1e9;
  peaks.bytes_per_second = 32000;  // 16 bytes take half a millisecond.
  const Roofline roofline = MakeRoofline(summary, costs, peaks);
  ASSERT_EQ(roofline.rows.size(), 1u);
  EXPECT_TRUE(roofline.rows[0].is_bound_by_memory);
  EXPECT_GT(roofline.rows[0].share_of_roof, 0.1);
  EXPECT_LE(roofline.rows[0].share_of_roof, 0.5);
  EXPECT_GT(roofline.rows[0].bytes_per_second, 0);
}

TEST(NodeCostsTest, AreFoundByPiece) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\ny = Relu(x)\n");
  const NodeCosts costs(*graph, {});
  ASSERT_NE(costs.Find("y"), nullptr);
  EXPECT_EQ(costs.Find("y")->input_bytes, 8u);
  EXPECT_EQ(costs.Find("y")->output_bytes, 8u);
  ProfileLabel label;
  label.kind = ProfileLabel::Kind::kPiece;
  label.name = "y: clip (loops)";
  EXPECT_EQ(costs.Find(label), costs.Find("y"));
  label.name = "conversion: to bfloat16";
  EXPECT_EQ(costs.Find(label), nullptr);
}

TEST(MachinePeaksTest, AreOfThisWorld) {
  const MachinePeaks peaks = MeasureMachinePeaks(1);
  EXPECT_GT(peaks.flops_per_second, 1e8);
  EXPECT_LT(peaks.flops_per_second, 1e13);
  EXPECT_GT(peaks.bytes_per_second, 1e7);
  EXPECT_LT(peaks.bytes_per_second, 1e13);
}

// The counters either count or report why not.
TEST(HardwareCountersTest, CountOrSayWhyNot) {
  const auto counters = HardwareCounters::Open();
  if (!counters.ok()) {
    EXPECT_THAT(std::string(counters.status().message()), HasSubstr("the kernel gives no hardware counters: "));
    return;
  }
  (*counters)->Start();
  volatile double sum = 0;
  for (int i = 0; i < 1000000; ++i) sum = sum + i;
  (*counters)->Stop();
  for (const CounterValue& counter : (*counters)->Read()) {
    if (counter.name == "instructions") {
      EXPECT_GT(counter.count, 1e6);
    }
  }
}

TEST(BackgroundLoadTest, StartsAndStops) {
  const BackgroundLoad none(0);
  const BackgroundLoad load(2);
}

TEST(RunTraceTest, HasEventsAndMemory) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\na = Exp(x)\nb = Exp(a)\nc = Add(a, b)\n");
  ASSERT_TRUE(graph->DeclareInterface({"x"}, {"c"}).ok());
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  const auto session = Session::Create(*graph, {"x"}, {"c"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  profiler.set_recording(true);
  ASSERT_TRUE((*session)->Run({Tensor::FromVector<float>({2}, {1, 2})}).ok());
  std::ostringstream out;
  WriteTrace(profiler, {}, *graph, NodeCosts(*graph, {}), "model.pb", out);
  const absl::StatusOr<JsonValue> json = ParseJson(out.str());
  ASSERT_TRUE(json.ok()) << json.status();
  std::vector<std::string> nodes;
  double most = 0, last = -1;
  for (const JsonValue& event : json->Find("traceEvents")->items) {
    const std::string phase = *TextMember(event, "ph");
    if (phase == "X") nodes.push_back(*TextMember(event, "name"));
    if (phase != "C") continue;
    last = event.Find("args")->Find("bytes")->number;
    most = std::max(most, last);
  }
  EXPECT_THAT(nodes, testing::ElementsAre("run", "a", "b", "c"));
  EXPECT_EQ(most, 24);  // While c is computed, a, b and c are live.
  EXPECT_EQ(last, 0);
}

TEST(RunTraceTest, NamesWhatEachThreadDid) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\na = Exp(x)\nb = Exp(a)\n");
  ASSERT_TRUE(graph->DeclareInterface({"x"}, {"b"}).ok());
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  const auto session = Session::Create(*graph, {"x"}, {"b"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  profiler.set_recording(true);
  ASSERT_TRUE((*session)->Run({Tensor::FromVector<float>({2}, {1, 2})}).ok());
  const ProfileRun run = profiler.runs().back();
  ASSERT_EQ(run.events.size(), 2u);
  const ProfileEvent& b = run.events[1];
  // Skipped: the session's thread is already shown by its node.
  const std::vector<ThreadWork> work = {{0, b.start_ns, b.end_ns},
                                        {2, b.start_ns, b.end_ns},
                                        {1, run.start_ns - 5, run.start_ns - 1}};  // Before the run.
  std::ostringstream out;
  WriteTrace(profiler, work, *graph, NodeCosts(*graph, {}), "model.pb", out);
  const absl::StatusOr<JsonValue> json = ParseJson(out.str());
  ASSERT_TRUE(json.ok()) << json.status();
  std::vector<std::string> done, names;
  for (const JsonValue& event : json->Find("traceEvents")->items) {
    if (event.Find("tid")->number == 0) continue;
    EXPECT_EQ(event.Find("tid")->number, 2);
    if (*TextMember(event, "ph") == "X") done.push_back(*TextMember(event, "name"));
    if (*TextMember(event, "ph") == "M") names.push_back(*TextMember(*event.Find("args"), "name"));
  }
  EXPECT_THAT(done, testing::ElementsAre("b"));
  EXPECT_THAT(names, testing::ElementsAre("worker 2"));
}

TEST(ThreadActivityTest, RecordsPiecesWhileItLives) {
  ThreadPool threads(3);
  // The pieces wait for each other, so each thread runs one.
  const auto loop = [&] {
    std::atomic<int> arrived{0};
    threads.ParallelFor(3, 1, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
  };
  loop();
  {
    ThreadActivity activity;
    EXPECT_TRUE(activity.Take().empty());
    loop();
    std::vector<int> numbers;
    for (const ThreadWork& work : activity.Take()) {
      numbers.push_back(work.thread);
      EXPECT_LE(work.start_ns, work.end_ns);
    }
    EXPECT_THAT(numbers, testing::UnorderedElementsAre(0, 1, 2));
    EXPECT_TRUE(activity.Take().empty());
    loop();
  }
  loop();
  ThreadActivity activity;
  EXPECT_TRUE(activity.Take().empty());
}

}  // namespace
}  // namespace permafrost

// Tests of profiles of small graphs: nodes, partitions, pieces, functions, and loops that exceed the limit.
#include "runtime_check/profiling/profiler.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/profiling/profile_summary.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/arithmetic_delegate.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// (x + 1) * 2, then its exponential.
SmallGraph* Affine() {
  auto* small = new SmallGraph;
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Const("one", Floats({}, {1}));
  small->Const("two", Floats({}, {2}));
  small->Float("add", "AddV2", {"x", "one"});
  small->Float("mul", "Mul", {"add", "two"});
  small->Float("exp", "Exp", {"mul"});
  return small;
}

std::unique_ptr<Session> Make(const Graph& graph, SessionOptions options) {
  auto session = Session::Create(graph, {"x"}, {"exp"}, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

std::vector<std::string> Names(const Profiler& profiler, const ProfileRun& run) {
  std::vector<std::string> names;
  for (const ProfileEvent& event : run.events) names.push_back(profiler.labels()[event.label].name);
  return names;
}

TEST(ProfilerTest, RecordsOnlyWhenTold) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  const auto session = Make(small->graph(), options);
  ASSERT_TRUE(session->Run({Floats({2}, {1, 2})}).ok());
  EXPECT_THAT(profiler.runs(), IsEmpty());
  profiler.set_recording(true);
  ASSERT_TRUE(session->Run({Floats({2}, {1, 2})}).ok());
  ASSERT_TRUE(session->Run({Floats({3}, {1, 2, 3})}).ok());
  const std::vector<ProfileRun> runs = profiler.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_THAT(Names(profiler, runs[0]), ElementsAre("add", "mul", "exp"));
  EXPECT_EQ(runs[0].events[0].output_bytes, 8);
  EXPECT_EQ(runs[1].events[0].output_bytes, 12);
  int64_t last = runs[0].start_ns;
  for (const ProfileEvent& event : runs[0].events) {
    EXPECT_GE(event.start_ns, last);
    EXPECT_GE(event.end_ns, event.start_ns);
    last = event.end_ns;
  }
  EXPECT_GE(runs[0].end_ns, last);
  profiler.Clear();
  EXPECT_THAT(profiler.runs(), IsEmpty());
}

// The times of events add up to the run, except for the time after the last event.
TEST(ProfilerTest, OneEventStartsWhereTheOneBeforeEnded) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  const auto session = Make(small->graph(), options);
  profiler.set_recording(true);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run({Floats({2}, {1, 2})}).ok());
  ASSERT_EQ(profiler.runs().size(), 3u);
  for (const ProfileRun& run : profiler.runs()) {
    EXPECT_THAT(Names(profiler, run), ElementsAre("add", "mul", "exp"));
    int64_t ended_ns = run.start_ns;
    for (const ProfileEvent& event : run.events) {
      EXPECT_EQ(event.start_ns, ended_ns);
      ended_ns = event.end_ns;
    }
  }
  EXPECT_EQ(profiler.labels().size(), 3u);
}

// The order of nodes may differ between runs.
TEST(ProfilerTest, AnotherOrderHasTheSameLabels) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler;
  const auto run = [&](const std::vector<std::string>& names) {
    profiler.BeginRun();
    for (const std::string& name : names) {
      ProfileTicket ticket;
      profiler.Name(*small->graph().Find(name), false, &ticket);
      profiler.Leave(ticket, profiler.Enter(), 0);
    }
    profiler.EndRun();
    EXPECT_EQ(Names(profiler, profiler.runs().back()), names);
  };
  run({"add", "mul", "exp"});
  run({"mul", "add", "exp"});
  run({"add", "exp", "mul"});
  EXPECT_EQ(profiler.labels().size(), 3u);
}

// Times are those of the steady clock, whatever the profiler's own counter is.
TEST(ProfilerTest, ClocksAgree) {
  const std::unique_ptr<SmallGraph> small(Affine());
  for (const Profiler::Clock clock : {Profiler::Clock::kFastest, Profiler::Clock::kSteady}) {
    Profiler profiler(100, clock);
    ProfileTicket add, mul;
    profiler.Name(*small->graph().Find("add"), false, &add);
    profiler.Name(*small->graph().Find("mul"), false, &mul);
    profiler.BeginRun();
    const int64_t begin_ns = Profiler::NowNanoseconds();
    const int64_t start = profiler.Enter();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    profiler.Leave(add, start, 0);
    const int64_t middle_ns = Profiler::NowNanoseconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    profiler.Leave(mul, profiler.Enter(), 0);
    const int64_t end_ns = Profiler::NowNanoseconds();
    profiler.EndRun();
    const std::vector<ProfileRun> runs = profiler.runs();
    ASSERT_EQ(runs.size(), 1u);
    const absl::Span<const ProfileEvent> events = runs[0].events;
    ASSERT_EQ(events.size(), 2u);
    EXPECT_LE(runs[0].start_ns, begin_ns);
    EXPECT_EQ(events[0].start_ns, runs[0].start_ns);
    // Half of the minimum sleep of the threads allows for differences between two clocks.
    EXPECT_GE(events[0].end_ns - events[0].start_ns, 10000000);
    EXPECT_LE(events[0].end_ns, middle_ns + 2500000);
    EXPECT_GE(events[1].end_ns - events[1].start_ns, 2500000);
    EXPECT_LE(events[1].end_ns, end_ns + 2500000);
    EXPECT_GE(runs[0].end_ns, end_ns);
  }
}

// Another profiler requests the names of a session's steps and partitions again.
TEST(ProfilerTest, TicketsAreOfOneProfiler) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler first, second;
  ProfileTicket ticket;
  EXPECT_FALSE(first.Knows(ticket));
  first.Name(*small->graph().Find("add"), false, &ticket);
  EXPECT_TRUE(first.Knows(ticket));
  EXPECT_FALSE(second.Knows(ticket));
}

// Names of pieces are identified by their addresses in order of arrival; another order only costs time.
TEST(ProfilerTest, PiecesMayComeInAnotherOrder) {
  SmallGraph partitions;
  partitions.Add("part", "some_delegate", {}, {});
  const Node& node = *partitions.graph().Find("part");
  const std::vector<std::string> names = {"one", "two", "three"};
  Profiler profiler;
  PieceTickets tickets;
  const auto run = [&](const std::vector<int>& order) {
    profiler.BeginRun();
    profiler.EnterPartition(node, &tickets);
    std::vector<std::string> expected;
    for (const int i : order) {
      profiler.on_piece()(names[i], SinceTheOneBefore());
      expected.push_back(names[i]);
    }
    profiler.EndRun();
    EXPECT_EQ(Names(profiler, profiler.runs().back()), expected);
  };
  run({0, 1, 2});
  run({1, 0});
  run({2, 1, 0, 0});
  EXPECT_EQ(profiler.labels().size(), 3u);
}

// A piece with a known duration starts that long before its end; another piece starts at the end of the previous one.
TEST(ProfilerTest, PiecesSayHowLongTheyTook) {
  SmallGraph partitions;
  partitions.Add("part", "some_delegate", {}, {});
  Profiler profiler;
  PieceTickets tickets;
  profiler.BeginRun();
  profiler.EnterPartition(*partitions.graph().Find("part"), &tickets);
  profiler.on_piece()("known", absl::Nanoseconds(100));
  profiler.on_piece()("not known", SinceTheOneBefore());
  profiler.on_piece()("negative", absl::Nanoseconds(-5));
  profiler.EndRun();
  const std::vector<ProfileRun> runs = profiler.runs();
  ASSERT_EQ(runs[0].events.size(), 3u);
  EXPECT_EQ(runs[0].events[0].end_ns - runs[0].events[0].start_ns, 100);
  EXPECT_EQ(runs[0].events[1].start_ns, runs[0].events[0].end_ns);
  EXPECT_EQ(runs[0].events[2].start_ns, runs[0].events[2].end_ns);
}

TEST(ProfilerTest, SeesPiecesInsideOfPartitions) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  options.delegate = std::make_shared<ArithmeticDelegate>();
  const auto session = Make(small->graph(), options);
  profiler.set_recording(true);
  ASSERT_TRUE(session->Run({Floats({2}, {1, 2})}).ok());
  const std::vector<ProfileRun> runs = profiler.runs();
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(runs[0].events.size(), 3u);
  const auto label = [&](size_t i) { return profiler.labels()[runs[0].events[i].label]; };
  EXPECT_EQ(label(0).kind, ProfileLabel::Kind::kPiece);
  EXPECT_EQ(label(0).name, "loops");
  EXPECT_EQ(label(0).op, "arithmetic");
  EXPECT_EQ(runs[0].events[0].depth, 1);
  EXPECT_EQ(label(1).kind, ProfileLabel::Kind::kPartition);
  EXPECT_EQ(runs[0].events[1].depth, 0);
  EXPECT_EQ(label(2).name, "exp");
  EXPECT_EQ(label(2).kind, ProfileLabel::Kind::kNode);
}

// The run that the delegate fails is not recorded; the run without the delegate is.
TEST(ProfilerTest, ForgetsARunThatFails) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  ArithmeticOptions failing;
  failing.runs_before_failure = 0;
  options.delegate = std::make_shared<ArithmeticDelegate>(failing);
  const auto session = Make(small->graph(), options);
  profiler.set_recording(true);
  ASSERT_TRUE(session->Run({Floats({2}, {1, 2})}).ok());
  const std::vector<ProfileRun> runs = profiler.runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_THAT(Names(profiler, runs[0]), ElementsAre("add", "mul", "exp"));
  EXPECT_EQ(runs[0].events[0].depth, 0);
}

TEST(ProfilerTest, CountsWhatDoesNotFit) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler(2);
  SessionOptions options;
  options.profiler = &profiler;
  const auto session = Make(small->graph(), options);
  profiler.set_recording(true);
  ASSERT_TRUE(session->Run({Floats({2}, {1, 2})}).ok());
  ASSERT_EQ(profiler.runs().size(), 1u);
  EXPECT_EQ(profiler.runs()[0].events.size(), 2u);
  EXPECT_EQ(profiler.runs()[0].num_dropped, 1);
}

constexpr char kCall[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "exp" op: "PartitionedCall" input: "x"
  attr { key: "Tin" value { list { type: [DT_FLOAT] } } }
  attr { key: "Tout" value { list { type: [DT_FLOAT] } } }
  attr { key: "f" value { func { name: "twice" } } } }
library { function {
  signature { name: "twice" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
  node_def { name: "first" op: "Exp" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
  node_def { name: "second" op: "Exp" input: "first:y:0" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "y" value: "second:y:0" } } }
)";

TEST(ProfilerTest, GoesIntoFunctions) {
  const auto graph = ReadGraphDefText(kCall);
  ASSERT_TRUE(graph.ok()) << graph.status();
  Profiler profiler;
  SessionOptions options;
  options.profiler = &profiler;
  const auto session = Make(**graph, options);
  profiler.set_recording(true);
  ASSERT_TRUE(session->Run({Floats({}, {1})}).ok());
  const std::vector<ProfileRun> runs = profiler.runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_THAT(Names(profiler, runs[0]), ElementsAre("first", "second", "exp"));
  EXPECT_EQ(profiler.labels()[runs[0].events[0].label].function, "twice");
  EXPECT_EQ(profiler.labels()[runs[0].events[2].label].function, "");
  EXPECT_EQ(runs[0].events[1].depth, 1);
  EXPECT_EQ(runs[0].events[2].depth, 0);
}

// A profiler that the test fills manually, with a simulated clock.
class Written {
 public:
  Written() {
    small_.Placeholder("x", DType::kFloat, {});
    small_.Float("a", "Exp", {"x"});
    small_.Float("b", "Exp", {"a"});
    small_.Add("call", "PartitionedCall", {"x"}, {});
  }
  const Node& node(const std::string& name) { return *small_.graph().Find(name); }

 private:
  SmallGraph small_;
};

TEST(ProfileSummaryTest, AddsUpOverRuns) {
  Written graph;
  Profiler profiler;
  ProfileSummary summary;
  profiler.set_recording(true);
  ProfileTicket call, a, b;
  profiler.Name(graph.node("call"), false, &call);
  profiler.Name(graph.node("a"), false, &a);
  profiler.Name(graph.node("b"), false, &b);
  for (int run = 0; run < 2; ++run) {
    profiler.BeginRun();
    const int64_t start = profiler.Enter();
    profiler.Leave(a, profiler.Enter(), 100);
    profiler.Leave(call, start, 10);
    profiler.Leave(b, profiler.Enter(), run == 0 ? 5 : 7);
    profiler.EndRun();
    summary.Add(profiler);
    profiler.Clear();
  }
  EXPECT_EQ(summary.num_runs(), 2);
  const std::vector<ProfileRow> rows = summary.Rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].shown.name, "b");
  EXPECT_EQ(rows[2].num_calls, 2);
  EXPECT_EQ(rows[2].memory, 7);
  EXPECT_EQ(summary.memory().first(), 115);
  EXPECT_EQ(summary.memory().newest(), 117);
  // The time of the call excluding the node inside it: the sums count nothing twice.
  double sum = 0;
  for (const ProfileRow& row : rows) sum += row.total_us;
  EXPECT_LE(sum, summary.wall_us().sum() + 2);
  const std::vector<ProfileType> types = summary.Types();
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].num_rows + types[1].num_rows, 3);
}

}  // namespace
}  // namespace permafrost

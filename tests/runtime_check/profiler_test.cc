// What a profile of small graphs says: nodes, partitions, pieces, functions, loops that are too long.
#include "runtime_check/profiler.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/profile_summary.h"
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

// So their times add up to the run, but for what comes behind the last.
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

// What came after a node in one run need not come after it in the next.
TEST(ProfilerTest, AnotherOrderHasTheSameLabels) {
  const std::unique_ptr<SmallGraph> small(Affine());
  Profiler profiler;
  const auto run = [&](const std::vector<std::string>& names) {
    profiler.BeginRun();
    for (const std::string& name : names) {
      const Node& node = *small->graph().Find(name);
      const int64_t start_ns = profiler.Enter(node, false);
      profiler.Leave(node, false, start_ns, 0);
    }
    profiler.EndRun();
    EXPECT_EQ(Names(profiler, profiler.runs().back()), names);
  };
  run({"add", "mul", "exp"});
  run({"mul", "add", "exp"});
  run({"add", "exp", "mul"});
  EXPECT_EQ(profiler.labels().size(), 3u);
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

// The run that the delegate spoils is not there, the one without it is.
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

// A profiler that the test fills by hand, with a clock of its own.
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
  for (int run = 0; run < 2; ++run) {
    profiler.BeginRun();
    const int64_t start = Profiler::NowNanoseconds();
    profiler.Enter(graph.node("call"), false);
    profiler.Enter(graph.node("a"), false);
    profiler.Leave(graph.node("a"), false, start, 100);
    profiler.Leave(graph.node("call"), false, start, 10);
    profiler.Enter(graph.node("b"), false);
    profiler.Leave(graph.node("b"), false, Profiler::NowNanoseconds(), run == 0 ? 5 : 7);
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
  // What the call took beside the node inside of it: the sums do not count anything twice.
  double sum = 0;
  for (const ProfileRow& row : rows) sum += row.total_us;
  EXPECT_LE(sum, summary.wall_us().sum() + 2);
  const std::vector<ProfileType> types = summary.Types();
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].num_rows + types[1].num_rows, 3);
}

}  // namespace
}  // namespace permafrost

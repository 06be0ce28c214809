// Tests of control flow in graphs built by hand: unusual and malformed structures, and the cost of loops.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void Enter(SmallGraph* small, const std::string& name, const std::vector<std::string>& inputs, const std::string& frame,
           bool is_constant = false, DType type = DType::kFloat) {
  small->Add(name, "Enter", inputs,
             {{"T", AttrValue::Type(type)},
              {"frame_name", AttrValue::String(frame)},
              {"is_constant", AttrValue::Bool(is_constant)}});
}

void Merge(SmallGraph* small, const std::string& name, const std::vector<std::string>& inputs) {
  small->Add(name, "Merge", inputs,
             {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(static_cast<int64_t>(inputs.size()))}});
}

// Adds a loop over x: while (x < limit) x = op(x, step). The names of all nodes start with `prefix`.
void Loop(SmallGraph* small, const std::string& prefix, const std::string& x, const std::string& limit,
          const std::string& step, const std::string& op = "AddV2") {
  const auto name = [&](const char* text) { return prefix + text; };
  Enter(small, name("enter"), {x}, prefix);
  Enter(small, name("limit"), {limit}, prefix, true);
  Enter(small, name("step"), {step}, prefix, true);
  Merge(small, name("merge"), {name("enter"), name("enter")});
  small->Float(name("less"), "Less", {name("merge"), name("limit")});
  small->Add(name("cond"), "LoopCond", {name("less")}, {});
  small->Float(name("switch"), "Switch", {name("merge"), name("cond")});
  small->Float(name("body"), op, {name("switch") + ":1", name("step")});
  small->Float(name("next"), "NextIteration", {name("body")});
  small->mutable_graph().SetInput(small->graph().Find(name("merge")), 1, {small->graph().Find(name("next")), 0});
  small->Float(name("exit"), "Exit", {name("switch")});
}

SmallGraph* CountingLoop() {
  auto* small = new SmallGraph;
  small->Placeholder("x", DType::kFloat, {});
  small->Placeholder("limit", DType::kFloat, {});
  small->Const("one", Floats({}, {1}));
  Loop(small, "loop/", "x", "limit", "one");
  return small;
}

absl::Status CreateError(const SmallGraph& small, const std::vector<std::string>& feeds,
                         const std::vector<std::string>& fetches) {
  return Session::Create(small.graph(), feeds, fetches).status();
}

TEST(FlowTest, ManyIterationsTakeNoMemory) {
  const std::unique_ptr<SmallGraph> small(CountingLoop());
  SessionOptions options;
  options.memory_limit = 4096;
  auto session = Session::Create(small->graph(), {"x", "limit"}, {"loop/exit"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const float limit : {0.f, 3.f, 20000.f, 1.f}) {
    const auto outputs = (*session)->Run({Floats({}, {0}), Floats({}, {limit})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(limit));
  }
}

TEST(FlowTest, AnEndlessLoopCanBeCancelled) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Const("zero", Floats({}, {0}));
  small.Const("one", Floats({}, {1}));
  Loop(&small, "loop/", "x", "one", "zero");
  SessionOptions options;
  // Asked between nodes, too, and true from the first time on until it is reset.
  int asked = 0;
  options.loop_limits.is_cancelled = [&asked] { return ++asked >= 1000; };
  auto session = Session::Create(small.graph(), {"x"}, {"loop/exit"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = (*session)->Run({Floats({}, {0})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), testing::StartsWith("the run was cancelled"));
  asked = -1000;
  EXPECT_TRUE((*session)->Run({Floats({}, {2})}).ok()) << "the session lives on";
}

TEST(FlowTest, ManyLoopsAndDeepNesting) {
  // Deeply nested loops: each passes its variable to the inner one.
  constexpr int kDepth = 1000;
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Const("limit", Floats({}, {2}));
  std::string x = "x", limit = "limit";
  for (int i = 0; i < kDepth; ++i) {
    const std::string frame = absl::StrCat("f", i);
    Enter(&small, frame + "x", {x}, frame, true);
    Enter(&small, frame + "limit", {limit}, frame, true);
    x = frame + "x";
    limit = frame + "limit";
  }
  small.Float("add", "AddV2", {x, limit});
  x = "add";
  for (int i = kDepth - 1; i >= 0; --i) {
    small.Float(absl::StrCat("exit", i), "Exit", {x});
    x = absl::StrCat("exit", i);
  }
  // Many loops in sequence.
  for (int i = 0; i < 1000; ++i) {
    Loop(&small, absl::StrCat("loop", i, "/"), x, "limit", "limit");
    x = absl::StrCat("loop", i, "/exit");
  }
  auto session = Session::Create(small.graph(), {"x"}, {x});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = (*session)->Run({Floats({}, {-3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(3)) << "-3 + 2, and + 2 while below 2";
}

TEST(FlowTest, OnlyTheBranchTakenRuns) {
  SmallGraph small;
  small.Placeholder("p", DType::kBool, {});
  small.Placeholder("x", DType::kFloat, {});
  small.Float("switch", "Switch", {"x", "p"});
  small.Float("off", "Neg", {"switch"});
  small.Add("check", "CheckNumerics", {"switch:1"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"message", AttrValue::String("on")}});
  Merge(&small, "merge", {"off", "check"});
  auto session = Session::Create(small.graph(), {"p", "x"}, {"merge", "merge:1"});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto bool_tensor = [](bool value) { return Tensor::Scalar(value); };
  const Tensor infinite = Floats({}, {std::numeric_limits<float>::infinity()});
  EXPECT_FALSE((*session)->Run({bool_tensor(true), infinite}).ok());
  const auto outputs = (*session)->Run({bool_tensor(false), infinite});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[1].elements<int32_t>()[0], 0);
}

TEST(FlowTest, AFetchOnABranchNotTakenHasNoValue) {
  SmallGraph small;
  small.Placeholder("p", DType::kBool, {});
  small.Placeholder("x", DType::kFloat, {});
  small.Float("switch", "Switch", {"x", "p"});
  small.Float("on", "Neg", {"switch:1"});
  small.Const("c", Floats({}, {5}));
  small.mutable_graph().AddControlInput(small.graph().Find("c"), small.graph().Find("on"));
  for (const char* fetch : {"on", "c", "switch:1"}) {
    auto session = Session::Create(small.graph(), {"p", "x"}, {fetch});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Run({Tensor::Scalar(true), Floats({}, {1})}).ok());
    EXPECT_EQ((*session)->Run({Tensor::Scalar(false), Floats({}, {1})}).status().message(),
              absl::StrCat("output '", fetch, "' has no value: it lies on a branch that was not taken"));
  }
}

TEST(FlowTest, ControlTriggerLivesOn) {
  SmallGraph small;
  small.Placeholder("p", DType::kBool, {});
  small.Placeholder("x", DType::kFloat, {});
  small.Float("switch", "Switch", {"x", "p"});
  small.Add("trigger", "ControlTrigger", {"^switch"}, {});
  small.Float("on", "Neg", {"switch:1"});
  small.mutable_graph().AddControlInput(small.graph().Find("trigger"), small.graph().Find("on"));
  small.Const("c", Floats({}, {5}));
  small.mutable_graph().AddControlInput(small.graph().Find("c"), small.graph().Find("trigger"));
  auto session = Session::Create(small.graph(), {"p", "x"}, {"c"});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->Run({Tensor::Scalar(false), Floats({}, {1})}).ok());
}

TEST(FlowTest, AGraphWithoutControlFlowKeepsItsPlan) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {4});
  small.Float("neg", "Neg", {"x"});
  small.Float("relu", "Relu", {"neg"});
  auto session = Session::Create(small.graph(), {"x"}, {"relu"});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Plan({Shape({4})}).ok());
  EXPECT_EQ((*session)->report().num_dynamic, 0);
}

TEST(FlowTest, WhatComesBeforeAndAfterBranchesIsPlannedWhereItCanBe) {
  const std::unique_ptr<SmallGraph> small(CountingLoop());
  small->Float("before", "Neg", {"x"});
  small->Float("before2", "Neg", {"before"});
  Loop(small.get(), "loop2/", "before2", "limit", "one");
  auto session = Session::Create(small->graph(), {"x", "limit"}, {"loop2/exit"});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = (*session)->Run({Floats({}, {0}), Floats({}, {2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(2));
  // Only less, cond and body are dynamic: the nodes before the loop are static.
  EXPECT_EQ((*session)->report().num_dynamic, 3);
}

TEST(FlowTest, FetchesOnlyWhatLeavesALoop) {
  const std::unique_ptr<SmallGraph> small(CountingLoop());
  EXPECT_EQ(CreateError(*small, {"x", "limit"}, {"loop/body"}).message(),
            "output 'loop/body': node 'loop/body' (AddV2) is in a loop; only what an Exit lets out can be fetched");
  EXPECT_THAT(std::string(CreateError(*small, {"x", "limit"}, {"loop/enter"}).message()), HasSubstr("is in a loop"));
}

TEST(FlowTest, RefusesMalformedFrames) {
  {
    SmallGraph small;
    small.Placeholder("x", DType::kFloat, {});
    small.Float("exit", "Exit", {"x"});
    EXPECT_EQ(CreateError(small, {"x"}, {"exit"}).message(), "node 'exit' (Exit): not in a frame; no Enter leads here");
  }
  {
    const std::unique_ptr<SmallGraph> small(CountingLoop());
    small->Float("mixed", "AddV2", {"loop/body", "x"});
    small->Float("out", "Exit", {"mixed"});
    EXPECT_THAT(std::string(CreateError(*small, {"x", "limit"}, {"out"}).message()),
                HasSubstr("node 'mixed' (AddV2): input "));
  }
  {
    const std::unique_ptr<SmallGraph> small(CountingLoop());
    Enter(small.get(), "again", {"loop/exit"}, "loop/");
    small->Float("out", "Exit", {"again"});
    EXPECT_EQ(
        CreateError(*small, {"x", "limit"}, {"out"}).message(),
        "node 'again' (Enter): enters frame 'loop/' with a value that waits for a cycle or for an Exit of the same "
        "frame");
  }
  {
    const std::unique_ptr<SmallGraph> small(CountingLoop());
    Enter(small.get(), "outer", {"x"}, "outer");
    Enter(small.get(), "inner", {"outer"}, "loop/");
    small->Float("out", "Exit", {"inner"});
    small->Float("out2", "Exit", {"out"});
    small->Float("sum", "AddV2", {"out2", "loop/exit"});
    EXPECT_THAT(std::string(CreateError(*small, {"x", "limit"}, {"sum"}).message()),
                HasSubstr("enters frame 'loop/' "));
  }
  {
    SmallGraph small;  // A back edge without NextIteration.
    small.Placeholder("x", DType::kFloat, {});
    Enter(&small, "enter", {"x"}, "f");
    Merge(&small, "merge", {"enter", "enter"});
    small.Float("neg", "Neg", {"merge"});
    small.mutable_graph().SetInput(small.graph().Find("merge"), 1, {small.graph().Find("neg"), 0});
    small.Float("exit", "Exit", {"neg"});
    EXPECT_THAT(std::string(CreateError(small, {"x"}, {"exit"}).message()),
                HasSubstr("nodes are in a cycle that no NextIteration closes or behind one, such as node 'merge'"));
  }
  {
    SmallGraph small;
    small.Placeholder("x", DType::kFloat, {});
    small.Add("enter", "Enter", {"x"}, {{"T", AttrValue::Type(DType::kFloat)}});
    small.Float("exit", "Exit", {"enter"});
    EXPECT_THAT(std::string(CreateError(small, {"x"}, {"exit"}).message()), HasSubstr("frame_name"));
  }
}

TEST(FlowTest, SwitchWantsAScalar) {
  SmallGraph small;
  small.Placeholder("p", DType::kBool, {kUnknownDim});
  small.Placeholder("x", DType::kFloat, {});
  small.Float("switch", "Switch", {"x", "p"});
  auto session = Session::Create(small.graph(), {"p", "x"}, {"switch"});
  ASSERT_TRUE(session.ok()) << session.status();
  char* data;
  const Tensor pair = *Tensor::Allocate(DType::kBool, Shape({2}), &data);
  data[0] = data[1] = 0;
  EXPECT_EQ((*session)->Run({pair, Floats({}, {1})}).status().message(),
            "node 'switch' (Switch): input 1 has the shape [2], expected a scalar");
}

}  // namespace
}  // namespace permafrost

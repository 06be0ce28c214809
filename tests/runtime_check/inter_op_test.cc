// Tests of nodes that run at the same time: results equal those of sequential runs bit by bit, also if nodes share
// memory; errors are the same; and nodes that gain nothing run sequentially.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/kernel.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/session.h"
#include "runtime_check/threads/thread_lane.h"
#include "tests/runtime_check/random_graph.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 64, kColumns = 96;

SessionOptions Threads(int num_threads, int inter_op_threads) {
  SessionOptions options;
  options.num_threads = num_threads;
  options.inter_op_threads = inter_op_threads;
  return options;
}

Tensor SomeInput() {
  std::mt19937 random(7);
  std::vector<float> values;
  for (int64_t i = 0; i < kRows * kColumns; ++i) values.push_back(static_cast<float>(random() % 2000) / 1000 - 1);
  return Floats({kRows, kColumns}, std::move(values));
}

// A graph with many branches, whose nodes alias, work in place, reduce, multiply and join.
class BranchyGraph : public RandomGraph {
 public:
  explicit BranchyGraph(uint32_t seed) : RandomGraph(seed, {kRows, kColumns}) {
    Const("c", Floats({kColumns}, std::vector<float>(kColumns, 1.5f)));
    Const("shape", Tensor::FromVector<int32_t>({2}, {static_cast<int32_t>(kRows), static_cast<int32_t>(kColumns)}));
    Const("w", RandomFloats({kColumns, kColumns}, 0.1f));
    AddNodes(10, 49,
             {RandomNode::kRelu, RandomNode::kAdd, RandomNode::kSubtract, RandomNode::kMultiply, RandomNode::kReshape,
              RandomNode::kMatMul, RandomNode::kTanh, RandomNode::kSoftmax},
             8);
  }
};

std::vector<std::string> BytesOf(const std::vector<Tensor>& tensors) {
  std::vector<std::string> bytes;
  for (const Tensor& tensor : tensors) bytes.emplace_back(tensor.bytes());
  return bytes;
}

TEST(InterOpTest, RandomGraphsGiveTheSameBitsAsOneNodeAtATime) {
  const Tensor x = SomeInput();
  int num_beside = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    BranchyGraph branchy(seed);
    const std::vector<std::string> fetches = branchy.SomeTensors(3);
    for (const int num_threads : {1, 2}) {
      const auto serial = Session::Create(branchy.graph(), {"x"}, fetches, Threads(num_threads, 1));
      ASSERT_TRUE(serial.ok()) << serial.status();
      const auto expected = (*serial)->Run({x});
      ASSERT_TRUE(expected.ok()) << expected.status();
      EXPECT_EQ((*serial)->report().num_beside, 0);
      for (const int inter_op_threads : {2, 3, 4}) {
        const auto session = Session::Create(branchy.graph(), {"x"}, fetches, Threads(num_threads, inter_op_threads));
        ASSERT_TRUE(session.ok()) << session.status();
        for (int run = 0; run < 5; ++run) {
          const auto outputs = (*session)->Run({x});
          ASSERT_TRUE(outputs.ok()) << outputs.status();
          EXPECT_TRUE(BytesOf(*outputs) == BytesOf(*expected))
              << "seed " << seed << ", threads " << num_threads << ", " << inter_op_threads << ", run " << run;
        }
        num_beside += static_cast<int>((*session)->report().num_beside);
      }
    }
  }
  if (kHasThreads) {
    EXPECT_GT(num_beside, 1000) << "hardly anything was tested";
  }
}

// Several output layers in parallel after one trunk.
void AddHeads(SmallGraph* small, int num_heads) {
  small->Placeholder("x", DType::kFloat, {kRows, kColumns});
  std::vector<float> weights;
  for (int64_t i = 0; i < kColumns * kColumns; ++i) weights.push_back(static_cast<float>(i % 17) / 100 - 0.08f);
  small->Const("w", Floats({kColumns, kColumns}, std::move(weights)));
  small->Float("trunk", "Tanh", {"x"});
  for (int head = 0; head < num_heads; ++head) {
    const std::string name = absl::StrCat("head", head);
    small->Float(name + "_a", "MatMul", {"trunk", "w"});
    small->Float(name + "_b", "Relu", {name + "_a"});
    small->Float(name + "_c", "MatMul", {name + "_b", "w"});
    small->Float(name, "Tanh", {name + "_c"});
  }
}

TEST(InterOpTest, HeadsRunBesideEachOtherAHundredTimes) {
  SmallGraph small;
  AddHeads(&small, 6);
  const std::vector<std::string> fetches = {"head0", "head1", "head2", "head3", "head4", "head5"};
  const Tensor x = SomeInput();
  const auto serial = Session::Create(small.graph(), {"x"}, fetches, Threads(1, 1));
  ASSERT_TRUE(serial.ok()) << serial.status();
  const auto expected = (*serial)->Run({x});
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const int inter_op_threads : {2, 3, 4, 8}) {
    const auto session = Session::Create(small.graph(), {"x"}, fetches, Threads(1, inter_op_threads));
    ASSERT_TRUE(session.ok()) << session.status();
    for (int run = 0; run < 100; ++run) {
      const auto outputs = (*session)->Run({x});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ASSERT_TRUE(BytesOf(*outputs) == BytesOf(*expected)) << inter_op_threads << " nodes, run " << run;
    }
    EXPECT_GE((*session)->report().num_beside, kHasThreads ? 24 : 0);
  }
}

TEST(InterOpTest, NothingRunsBesideOthersWhereNothingIsGained) {
  SmallGraph chain;
  chain.Placeholder("x", DType::kFloat, {kRows, kColumns});
  chain.Float("n0", "Tanh", {"x"});
  for (int i = 1; i < 20; ++i) chain.Float(absl::StrCat("n", i), "Tanh", {absl::StrCat("n", i - 1)});
  for (const std::string fetch : {"n0", "n19"}) {
    const auto session = Session::Create(chain.graph(), {"x"}, {fetch}, Threads(2, 4));
    ASSERT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({SomeInput()});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*session)->report().num_stretches, 0);
  }
}

TEST(InterOpTest, NumbersOfThreadsOutOfRangeAreBrought) {
  SmallGraph small;
  AddHeads(&small, 3);
  for (const int inter_op_threads : {-5, 0, 1}) {
    const auto session = Session::Create(small.graph(), {"x"}, {"head0", "head2"}, Threads(1, inter_op_threads));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Run({SomeInput()}).ok());
    EXPECT_EQ((*session)->report().num_stretches, 0);
  }
  // More inter-op threads than processors, nodes, or threads that a node uses.
  const auto session = Session::Create(small.graph(), {"x"}, {"head0", "head2"}, Threads(2, 40));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->Run({SomeInput()}).ok());
}

// --- Errors ----------------------------------------------------------------------------------------------------------

// Fails in Compute if the first element of its input exceeds the number of the node.
absl::Status PrepareLimit(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(0));
  return absl::OkStatus();
}

absl::Status ComputeLimit(ComputeContext* context) {
  float sum = 0;
  for (int64_t i = 0; i < context->input_shape(0).num_elements(); ++i) sum += context->input<float>(0)[i];
  const std::string name(context->node().name());
  if (context->input<float>(0)[0] > 0.5f && name.back() != '0') {
    return absl::InvalidArgumentError(absl::StrCat("limit ", name, sum > 1e30f ? "!" : ""));
  }
  std::copy_n(context->input<float>(0), context->input_shape(0).num_elements(), context->output<float>(0));
  return absl::OkStatus();
}

const Kernel* LimitLookup(Op op) {
  static const auto* const kLimit = new Kernel(Kernel("x, or an error").Prepare(PrepareLimit).Compute(ComputeLimit));
  return op == ops::kAbs ? kLimit : FindKernel(op);
}

TEST(InterOpTest, TheErrorIsThatOfOneNodeAtATime) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kRows, kColumns});
  std::vector<std::string> fetches;
  for (int i = 0; i < 12; ++i) {
    const std::string name = absl::StrCat("branch", i);
    small.Float(name + "_soft", "Softmax", {"x"});
    small.Float(name, "Abs", {"x"});
    small.Float(name + "_after", "Tanh", {name});
    fetches.push_back(name + "_soft");
    fetches.push_back(name + "_after");
  }
  Tensor good = SomeInput();
  std::vector<float> values = ToVector(good);
  values[0] = 0;
  good = Floats({kRows, kColumns}, values);
  values[0] = 1;
  const Tensor bad = Floats({kRows, kColumns}, values);
  for (const int inter_op_threads : {1, 2, 4}) {
    SessionOptions options = Threads(1, inter_op_threads);
    options.kernel_lookup = LimitLookup;
    const auto session = Session::Create(small.graph(), {"x"}, fetches, options);
    ASSERT_TRUE(session.ok()) << session.status();
    std::vector<std::string> expected;
    for (int run = 0; run < 50; ++run) {
      const auto outputs = (*session)->Run({bad});
      ASSERT_EQ(outputs.status().code(), absl::StatusCode::kInvalidArgument) << outputs.status();
      // branch0 and branch10 do not fail.
      EXPECT_THAT(std::string(outputs.status().message()), HasSubstr("limit branch1")) << outputs.status();
      EXPECT_THAT(std::string(outputs.status().message()), testing::Not(HasSubstr("branch11")));
      const auto again = (*session)->Run({good});
      ASSERT_TRUE(again.ok()) << again.status();
      if (expected.empty()) expected = BytesOf(*again);
      EXPECT_TRUE(BytesOf(*again) == expected);
    }
    EXPECT_EQ((*session)->report().num_beside > 0, kHasThreads && inter_op_threads > 1);
  }
}

// --- Limits and observation ------------------------------------------------------------------------------------------

TEST(InterOpTest, MemoryThatSufficesForOneNodeAtATimeIsEnough) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kRows, kColumns});
  std::vector<std::string> fetches;
  small.Const("axis", Tensor::FromVector<int32_t>({1}, {0}));
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("branch", i);
    small.Float(name, "Softmax", {"x"});
    small.Float(name + "_then", "Tanh", {name});
    small.Add(name + "_sum", "Sum", {name + "_then", "axis"},
              {{"T", AttrValue::Type(DType::kFloat)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
    fetches.push_back(name + "_sum");
  }
  const auto arena = [&](int inter_op_threads, int64_t limit, int64_t* num_stretches) -> int64_t {
    SessionOptions options = Threads(1, inter_op_threads);
    options.memory_limit = limit;
    const auto session = Session::Create(small.graph(), {"x"}, fetches, options);
    EXPECT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({SomeInput()});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    *num_stretches = (*session)->report().num_stretches;
    return (*session)->report().arena_bytes;
  };
  int64_t num_stretches;
  const int64_t serial = arena(1, 1 << 30, &num_stretches);
  EXPECT_EQ(num_stretches, 0);
  const int64_t beside = arena(2, 1 << 30, &num_stretches);
  EXPECT_EQ(num_stretches > 0, kHasThreads);
  EXPECT_GE(beside, serial);
  EXPECT_EQ(arena(2, serial + 4096, &num_stretches), serial);
  EXPECT_EQ(num_stretches, 0);
}

TEST(InterOpTest, WhatIsWatchedRunsInOrder) {
  SmallGraph small;
  AddHeads(&small, 4);
  const std::vector<std::string> fetches = {"head0", "head1", "head2", "head3"};
  Profiler profiler;
  std::vector<std::string> names;
  SessionOptions options = Threads(2, 2);
  options.profiler = &profiler;
  const auto session = Session::Create(small.graph(), {"x"}, fetches, options);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto expected = (*session)->Run({SomeInput()});
  ASSERT_TRUE(expected.ok()) << expected.status();
  profiler.set_recording(true);
  const auto outputs = (*session)->Run({SomeInput()});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(BytesOf(*outputs) == BytesOf(*expected));
  ASSERT_EQ(profiler.runs().size(), 1u);
  const auto events = profiler.runs()[0].events;
  EXPECT_EQ(events.size(), 17u);
  for (size_t i = 1; i < events.size(); ++i) EXPECT_GE(events[i].start_ns, events[i - 1].end_ns);
  profiler.set_recording(false);
  const auto after = (*session)->Run({SomeInput()});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(BytesOf(*after) == BytesOf(*expected));
}

TEST(InterOpTest, EffectsKeepTheirOrder) {
  SmallGraph small;
  AddHeads(&small, 4);
  for (int i = 0; i < 4; ++i) {
    small.Add(absl::StrCat("print", i), "Print", {absl::StrCat("head", i), absl::StrCat("head", i)},
              {{"T", AttrValue::Type(DType::kFloat)},
               {"U", AttrValue::TypeList({DType::kFloat})},
               {"message", AttrValue::String(absl::StrCat("head ", i, ": "))},
               {"summarize", AttrValue::Int(1)}});
  }
  const std::vector<std::string> fetches = {"print0", "print1", "print2", "print3"};
  std::string expected;
  for (const int inter_op_threads : {1, 2, 4}) {
    std::string printed;
    SessionOptions options = Threads(1, inter_op_threads);
    options.print = [&](absl::string_view, absl::string_view text) { absl::StrAppend(&printed, text); };
    const auto session = Session::Create(small.graph(), {"x"}, fetches, options);
    ASSERT_TRUE(session.ok()) << session.status();
    for (int run = 0; run < 20; ++run) ASSERT_TRUE((*session)->Run({SomeInput()}).ok());
    if (expected.empty()) expected = printed;
    EXPECT_EQ(printed, expected);
  }
  EXPECT_THAT(expected, HasSubstr("head 3: "));
}

}  // namespace
}  // namespace permafrost

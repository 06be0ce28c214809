// Tests of delegates that decline, fail or request too much memory, and of the cache of plans.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/arithmetic_delegate.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// relu(-exp(-x)) + 1. The delegate supports both ends; only the middle separates them.
void Fill(SmallGraph* small) {
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Const("one", Floats({}, {1}));
  small->Float("a", "Neg", {"x"});
  small->Float("b", "Exp", {"a"});
  small->Float("c", "Neg", {"b"});
  small->Float("d", "Relu", {"c"});
  small->Float("e", "AddV2", {"d", "one"});
}

struct Delegating {
  std::shared_ptr<ArithmeticDelegate> delegate;
  std::unique_ptr<Session> session;
};

Delegating Make(const SmallGraph& small, const std::vector<std::string>& fetches, ArithmeticOptions arithmetic,
                SessionOptions options = {}) {
  Delegating run;
  run.delegate = std::make_shared<ArithmeticDelegate>(arithmetic);
  options.delegate = run.delegate;
  auto session = Session::Create(small.graph(), {"x"}, fetches, options);
  EXPECT_TRUE(session.ok()) << session.status();
  if (session.ok()) run.session = *std::move(session);
  return run;
}

std::vector<float> Results(Session* session, const Tensor& x) {
  const auto outputs = session->Run({x});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? ToVector((*outputs)[0]) : std::vector<float>();
}

TEST(DelegateFailureTest, APartitionThatIsNotWorthwhileStays) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions arithmetic;
  arithmetic.least_nodes = 2;
  const Delegating run = Make(small, {"e"}, arithmetic);
  EXPECT_THAT(Results(run.session.get(), Floats({2}, {1, 2})), ElementsAre(1, 1));
  EXPECT_THAT(run.delegate->compiled(), SizeIs(1));
  const DelegationReport& report = run.session->report().delegation;
  ASSERT_THAT(report.left, SizeIs(2));
  EXPECT_EQ(report.left[0].node, "a");
  EXPECT_EQ(report.left[0].reason, "its partition is too small to be worth entering");
  EXPECT_EQ(report.failure, "");
}

// Sizes that exceed any memory, and whose sum overflows int64.
TEST(DelegateFailureTest, ADelegateThatAsksForAbsurdMemoryIsLeftOut) {
  SmallGraph small;
  Fill(&small);
  for (const int64_t scratch : {int64_t{1} << 40, INT64_MAX / 2, INT64_MAX - 63, INT64_MAX}) {
    ArithmeticOptions arithmetic;
    arithmetic.scratch_bytes = scratch;
    const Delegating run = Make(small, {"e"}, arithmetic);
    EXPECT_THAT(Results(run.session.get(), Floats({2}, {1, 2})), ElementsAre(1, 1)) << scratch;
    EXPECT_THAT(run.session->report().delegation.failure, HasSubstr("does not fit the memory limit")) << scratch;
  }
}

TEST(DelegateFailureTest, ADelegateThatFailsToCompileIsLeftOut) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions arithmetic;
  arithmetic.fails_to_compile = true;
  const Delegating run = Make(small, {"e"}, arithmetic);
  EXPECT_THAT(Results(run.session.get(), Floats({2}, {1, 2})), ElementsAre(1, 1));
  const DelegationReport& report = run.session->report().delegation;
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(5));
  EXPECT_EQ(report.left[0].reason, "the delegate failed to compile its partition: the compiler is out of ideas");
  EXPECT_EQ(report.left[1].reason, "does not compute Exp");
}

TEST(DelegateFailureTest, ARunThatFailsHalfWayIsDoneByTheKernels) {
  SmallGraph small;
  Fill(&small);
  for (const int successes : {0, 1, 2, 5}) {
    ArithmeticOptions arithmetic;
    arithmetic.runs_before_failure = successes;
    const Delegating run = Make(small, {"e", "c", "x", "a"}, arithmetic);
    for (int round = 0; round < 4; ++round) {
      const auto outputs = run.session->Run({Floats({2}, {1, 0})});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(1, 1));
      EXPECT_THAT(ToVector((*outputs)[1]), ElementsAre(testing::FloatNear(-0.36788f, 1e-5f), -1));
      EXPECT_THAT(ToVector((*outputs)[2]), ElementsAre(1, 0));
      EXPECT_THAT(ToVector((*outputs)[3]), ElementsAre(-1, 0));
    }
    const DelegationReport& report = run.session->report().delegation;
    EXPECT_THAT(report.partitions, IsEmpty());
    EXPECT_EQ(report.failure,
              successes % 2 == 0
                  ? "a partition failed to run, so the reference kernels run everything for these input shapes: node "
                    "'a...a#0' (arithmetic): the device is gone"
                  : "a partition failed to run, so the reference kernels run everything for these input shapes: node "
                    "'c...e#1' (arithmetic): the device is gone");
  }
}

TEST(DelegateFailureTest, AFailureHoldsForItsShapesAlone) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions arithmetic;
  arithmetic.runs_before_failure = 3;
  const Delegating run = Make(small, {"e"}, arithmetic);
  Results(run.session.get(), Floats({2}, {1, 2}));
  EXPECT_EQ(run.session->report().delegation.failure, "");
  Results(run.session.get(), Floats({3}, {1, 2, 3}));
  EXPECT_NE(run.session->report().delegation.failure, "");
  ASSERT_TRUE(run.session->Plan({Shape({2})}).ok());
  EXPECT_THAT(run.session->report().delegation.partitions, SizeIs(2));
}

// Without the delegate, the session binds the memory of the caller differently.
TEST(DelegateFailureTest, FallsBackIntoMemoryOfTheCaller) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions arithmetic;
  arithmetic.runs_before_failure = 1;
  const Delegating run = Make(small, {"e", "d", "e"}, arithmetic);
  for (int round = 0; round < 3; ++round) {
    std::vector<float> e(2, 7), d(2, 7), again(2, 7);
    const auto bytes = [](std::vector<float>& values) {
      return absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float));
    };
    const absl::Status status = run.session->RunInto({Floats({2}, {1, 2})}, {bytes(e), bytes(d), bytes(again)});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(e, ElementsAre(1, 1));
    EXPECT_THAT(again, ElementsAre(1, 1));
    EXPECT_THAT(d, ElementsAre(0, 0));
  }
}

TEST(DelegateFailureTest, WhatDoesNotFitTheMemoryLimitGoesToTheKernels) {
  SmallGraph small;
  Fill(&small);
  for (const bool is_scratch : {false, true}) {
    ArithmeticOptions arithmetic;
    (is_scratch ? arithmetic.scratch_bytes : arithmetic.constant_bytes) = 100'000;
    SessionOptions options;
    options.memory_limit = 50'000;
    const Delegating run = Make(small, {"e"}, arithmetic, options);
    EXPECT_THAT(Results(run.session.get(), Floats({2}, {1, 2})), ElementsAre(1, 1));
    const DelegationReport& report = run.session->report().delegation;
    EXPECT_THAT(report.partitions, IsEmpty());
    EXPECT_THAT(report.failure, HasSubstr("the plan with arithmetic does not fit the memory limit"));
    options.memory_limit = 300'000;
    EXPECT_EQ(Make(small, {"e"}, arithmetic, options).session->Plan({Shape({2})}).status(), absl::OkStatus());
  }
}

TEST(DelegateFailureTest, NegativeSizesCountAsNone) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions arithmetic;
  arithmetic.constant_bytes = -5;
  const Delegating run = Make(small, {"e"}, arithmetic);
  EXPECT_THAT(Results(run.session.get(), Floats({2}, {1, 2})), ElementsAre(1, 1));
  EXPECT_THAT(run.session->report().delegation.partitions, SizeIs(2));
}

TEST(DelegateFailureTest, SessionsInThreadsShareADelegate) {
  SmallGraph small;
  Fill(&small);
  const auto delegate = std::make_shared<ArithmeticDelegate>();
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      SessionOptions options;
      options.delegate = delegate;
      auto session = Session::Create(small.graph(), {"x"}, {"d"}, options);
      ASSERT_TRUE(session.ok()) << session.status();
      for (int round = 0; round < 20; ++round) {
        results[i] = Results(session->get(), Floats({3}, {1, 2, static_cast<float>(round)}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) EXPECT_THAT(result, ElementsAre(0, 0, 0));
  EXPECT_THAT(delegate->compiled(), SizeIs(8));
}

TEST(DelegateFailureTest, PiecesAreReported) {
  SmallGraph small;
  Fill(&small);
  SessionOptions options;
  std::vector<std::string> pieces, nodes;
  options.on_piece = [&](absl::string_view name, absl::Duration) { pieces.emplace_back(name); };
  options.on_node = [&](const Node& node, absl::Duration) { nodes.emplace_back(node.name()); };
  const Delegating run = Make(small, {"e"}, {}, options);
  Results(run.session.get(), Floats({2}, {1, 2}));
  EXPECT_THAT(pieces, ElementsAre("loops", "loops"));
  EXPECT_THAT(nodes, ElementsAre("a...a#0", "b", "c...e#1"));
}

// count(x): while (x < 5) x = -(-x) + 1
constexpr char kLoop[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "y" op: "CALL" input: "x" ATTRS }
library {
  function {
    signature { name: "less" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_BOOL } }
    node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 5 } } } }
    node_def { name: "less" op: "Less" input: "x" input: "c:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "less:z:0" }
  }
  function {
    signature { name: "step" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
    node_def { name: "a" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "b" op: "Neg" input: "a:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "d" op: "AddV2" input: "b:y:0" input: "c:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "d:z:0" }
  }
}
)";

TEST(DelegateFailureTest, BodiesOfFunctionsGoToTheDelegateAndFallBack) {
  const std::string loop = absl::StrReplaceAll(kLoop, {{"CALL", "While"},
                                                       {"ATTRS",
                                                        "attr { key: \"T\" value { list { type: [DT_FLOAT] } } }\n"
                                                        "attr { key: \"cond\" value { func { name: \"less\" } } }\n"
                                                        "attr { key: \"body\" value { func { name: \"step\" } } }"}});
  const std::string call = absl::StrReplaceAll(kLoop, {{"CALL", "PartitionedCall"},
                                                       {"ATTRS",
                                                        "attr { key: \"Tin\" value { list { type: [DT_FLOAT] } } }\n"
                                                        "attr { key: \"Tout\" value { list { type: [DT_FLOAT] } } }\n"
                                                        "attr { key: \"f\" value { func { name: \"step\" } } }"}});
  for (const bool is_loop : {true, false}) {
    const auto graph = ReadGraphDefText(is_loop ? loop : call);
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (const int successes : {-1, 0, 1, 3}) {
      ArithmeticOptions arithmetic;
      arithmetic.runs_before_failure = successes;
      const auto delegate = std::make_shared<ArithmeticDelegate>(arithmetic);
      SessionOptions options;
      options.delegate = delegate;
      auto session = Session::Create(**graph, {"x"}, {"y"}, options);
      ASSERT_TRUE(session.ok()) << session.status();
      for (int round = 0; round < 3; ++round) {
        EXPECT_THAT(Results(session->get(), Floats({}, {0})), ElementsAre(is_loop ? 5 : 1));
      }
      EXPECT_THAT(delegate->compiled(), SizeIs(1));
      const DelegationReport report = (*session)->FullReport().delegation;
      if (successes >= 0 && successes < (is_loop ? 15 : 3)) {
        EXPECT_THAT(report.failure, HasSubstr("function 'step': a partition failed to run"));
        EXPECT_THAT(report.partitions, IsEmpty());
        continue;
      }
      EXPECT_EQ(report.failure, "");
      ASSERT_THAT(report.partitions, SizeIs(1));
      EXPECT_EQ(report.partitions[0].function, "step");
      EXPECT_THAT(report.partitions[0].nodes, ElementsAre("a", "b", "d"));
    }
  }
}

// The following tests cover cached plans.

TEST(PlanCacheTest, KeepsTheLastPlans) {
  SmallGraph small;
  Fill(&small);
  SessionOptions options;
  options.most_plans = 2;
  const Delegating run = Make(small, {"d"}, {}, options);
  const auto num_plans_after = [&](int64_t size) {
    EXPECT_THAT(Results(run.session.get(), Floats({size}, std::vector<float>(static_cast<size_t>(size), 1))),
                SizeIs(size));
    return run.delegate->compiled().size() / 2;
  };
  EXPECT_EQ(num_plans_after(1), 1);
  EXPECT_EQ(num_plans_after(2), 2);
  EXPECT_EQ(num_plans_after(1), 2);
  EXPECT_EQ(num_plans_after(2), 2);
  EXPECT_EQ(num_plans_after(1), 2);
  EXPECT_EQ(num_plans_after(3), 3) << "in place of 2, which was used less recently than 1";
  EXPECT_EQ(num_plans_after(1), 3);
  EXPECT_EQ(num_plans_after(2), 4);
  EXPECT_EQ(num_plans_after(3), 5);
}

TEST(PlanCacheTest, OldPlansMakeRoom) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions arithmetic;
  arithmetic.constant_bytes = 40'000;
  SessionOptions options;
  options.memory_limit = 100'000;
  const Delegating run = Make(small, {"e"}, arithmetic, options);
  for (int round = 0; round < 2; ++round) {
    for (const int64_t size : {1, 2, 3}) {
      Results(run.session.get(), Floats({size}, std::vector<float>(static_cast<size_t>(size), 1)));
      EXPECT_THAT(run.session->report().delegation.partitions, SizeIs(2)) << "only one plan fits at a time";
    }
  }
}

// Memory allocated during the run also evicts plans: the output shape of Where is known only during the run.
TEST(PlanCacheTest, OldPlansMakeRoomDuringTheRun) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  small.Float("a", "Exp", {"x"});
  small.Float("b", "Exp", {"a"});
  small.Add("where", "Where", {"b"}, {{"T", AttrValue::Type(DType::kFloat)}});
  SessionOptions options;
  options.memory_limit = 40'000;
  const Delegating run = Make(small, {"where"}, {}, options);
  for (const int64_t size : {1000, 2000, 2500, 1000, 2500}) {
    const auto outputs = run.session->Run({Floats({size}, std::vector<float>(static_cast<size_t>(size), 1))});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].shape(), Shape({size, 1}));
  }
  const auto outputs = run.session->Run({Floats({6000}, std::vector<float>(6000, 1))});
  EXPECT_EQ(outputs.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(run.session->Run({Floats({1}, {1})}).ok()) << "the session lives on";
}

TEST(PlanCacheTest, FewerThanOnePlanCountsAsOne) {
  SmallGraph small;
  Fill(&small);
  SessionOptions options;
  options.most_plans = -3;
  const Delegating run = Make(small, {"e"}, {}, options);
  EXPECT_THAT(Results(run.session.get(), Floats({2}, {1, 2})), ElementsAre(1, 1));
  EXPECT_THAT(Results(run.session.get(), Floats({1}, {1})), ElementsAre(1));
}

}  // namespace
}  // namespace permafrost

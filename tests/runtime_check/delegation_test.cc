// Tests of the partitioner: the grouping of nodes for a delegate, and the partitions of graphs.
#include "runtime_check/planning/delegation.h"

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/arithmetic_delegate.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::NanSensitiveFloatEq;
using testing::Pair;
using testing::Pointwise;
using testing::SizeIs;

Program ProgramOf(const SmallGraph& small, const std::vector<std::string>& feeds,
                  const std::vector<std::string>& fetches) {
  static const auto* const kLookup = new KernelLookup(&FindKernel);
  static const auto* const kNoRegions = new RegionReader;
  static MemoryBudget budget(int64_t{1} << 40);
  absl::StatusOr<Program> program =
      BuildProgram(small.graph(), {feeds, fetches, {}}, {*kLookup, &budget, nullptr, *kNoRegions});
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

// Assigns multiplications and negations to the delegate. Nodes named "n..." are not run.
std::vector<Runner> RunnersOf(const Program& program) {
  std::vector<Runner> runners;
  for (const ProgramNode& node : program.nodes) {
    const absl::string_view op = node.node->op().name();
    runners.push_back(node.node->name()[0] == 'n'  ? Runner::kNone
                      : op == "Mul" || op == "Neg" ? Runner::kDelegate
                                                   : Runner::kKernel);
  }
  return runners;
}

std::vector<std::vector<std::string>> NamesOfGroups(const Program& program) {
  std::vector<std::vector<std::string>> names;
  for (const std::vector<int>& group : GroupNodes(program, RunnersOf(program))) {
    names.emplace_back();
    for (const int position : group) names.back().emplace_back(program.nodes[position].node->name());
  }
  return names;
}

// Returns the dependencies of each node by position: data and control edges. Nodes that are not run only order by
// control edges.
std::vector<std::vector<int>> DependenciesOf(const Program& program, const std::vector<Runner>& runners) {
  std::map<const Node*, int> positions;
  for (size_t i = 0; i < program.nodes.size(); ++i) positions[program.nodes[i].node] = static_cast<int>(i);
  std::vector<std::vector<int>> result(program.nodes.size());
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = *program.nodes[i].node;
    for (int j = 0; j < node.num_inputs(); ++j) {
      if (runners[i] == Runner::kNone && j < node.num_data_inputs()) continue;
      const auto found = positions.find(node.input(j).node);
      if (found != positions.end()) result[i].push_back(found->second);
    }
  }
  return result;
}

// Checks that groups contain every node once, alternate between runners, respect the order, and are no more than the
// longest path requires.
void CheckGroups(const Program& program) {
  const std::vector<Runner> runners = RunnersOf(program);
  const std::vector<std::vector<int>> groups = GroupNodes(program, runners);
  const std::vector<std::vector<int>> dependencies = DependenciesOf(program, runners);
  const size_t count = program.nodes.size();
  std::vector<int> group_of(count, -1);
  for (size_t i = 0; i < groups.size(); ++i) {
    EXPECT_TRUE(i == 0 || !groups[i].empty());
    EXPECT_TRUE(std::is_sorted(groups[i].begin(), groups[i].end()));
    for (const int position : groups[i]) {
      EXPECT_EQ(runners[position], i % 2 == 1 ? Runner::kDelegate : Runner::kKernel);
      EXPECT_EQ(group_of[position], -1) << "a node in two groups";
      group_of[position] = static_cast<int>(i);
    }
  }
  // Positions ascend along every edge, so one pass finds the longest path with its changes of runner.
  std::vector<int> least(count, 0);
  int most = 0;
  for (size_t i = 0; i < count; ++i) {
    for (const int on : dependencies[i]) least[i] = std::max(least[i], least[on]);
    if (runners[i] == Runner::kNone) {
      EXPECT_EQ(group_of[i], -1);
      continue;
    }
    if ((least[i] % 2 == 1) != (runners[i] == Runner::kDelegate)) ++least[i];
    EXPECT_EQ(group_of[i], least[i]) << program.nodes[i].node->name() << ": neither too early nor too late";
    most = std::max(most, least[i] + 1);
  }
  EXPECT_EQ(groups.size(), static_cast<size_t>(most));
}

void Op(SmallGraph* small, const std::string& name, const std::string& op, const std::vector<std::string>& inputs) {
  small->Float(name, op, inputs);
}

TEST(GroupNodesTest, Chains) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "b", "Neg", {"a"});
  Op(&small, "c", "Exp", {"b"});
  Op(&small, "d", "Exp", {"c"});
  Op(&small, "e", "Mul", {"d", "b"});
  const Program program = ProgramOf(small, {"x"}, {"e"});
  EXPECT_THAT(NamesOfGroups(program),
              ElementsAre(IsEmpty(), ElementsAre("a", "b"), ElementsAre("c", "d"), ElementsAre("e")));
  CheckGroups(program);
  EXPECT_THAT(NamesOfGroups(ProgramOf(small, {"d", "b"}, {"e"})), ElementsAre(IsEmpty(), ElementsAre("e")));
  EXPECT_THAT(NamesOfGroups(ProgramOf(small, {"b"}, {"d"})), ElementsAre(ElementsAre("c", "d")));
  EXPECT_THAT(NamesOfGroups(ProgramOf(small, {"x"}, {"x"})), IsEmpty());
}

// One arm of the diamond is not delegated: the ends cannot be in one group, which would depend on itself.
TEST(GroupNodesTest, DiamondsStayConvex) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  Op(&small, "top", "Neg", {"x"});
  Op(&small, "left", "Neg", {"top"});
  Op(&small, "right", "Exp", {"top"});
  Op(&small, "bottom", "Mul", {"left", "right"});
  const Program program = ProgramOf(small, {"x"}, {"bottom"});
  EXPECT_THAT(NamesOfGroups(program),
              ElementsAre(IsEmpty(), ElementsAre("top", "left"), ElementsAre("right"), ElementsAre("bottom")));
  CheckGroups(program);
}

// Two delegated rails with rungs that are not delegated: the number of groups equals the number of consecutive rungs.
TEST(GroupNodesTest, Ladders) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  std::string left = "x", right = "x";
  for (int i = 0; i < 5; ++i) {
    Op(&small, absl::StrCat("l", i), "Neg", {left});
    Op(&small, absl::StrCat("rung", i), "Exp", {absl::StrCat("l", i)});
    Op(&small, absl::StrCat("r", i), "Mul", {right, absl::StrCat("rung", i)});
    left = absl::StrCat("l", i);
    right = absl::StrCat("r", i);
  }
  const Program program = ProgramOf(small, {"x"}, {left, right});
  EXPECT_THAT(NamesOfGroups(program), ElementsAre(IsEmpty(), SizeIs(5), SizeIs(5), SizeIs(5)))
      << "the rungs do not wait for each other";
  CheckGroups(program);
}

TEST(GroupNodesTest, SeparateBranchesShareAGroup) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  for (const char* branch : {"a", "b", "c"}) {
    Op(&small, absl::StrCat(branch, "1"), "Exp", {"x"});
    Op(&small, absl::StrCat(branch, "2"), "Neg", {absl::StrCat(branch, "1")});
  }
  const Program program = ProgramOf(small, {"x"}, {"a2", "b2", "c2"});
  EXPECT_THAT(NamesOfGroups(program), ElementsAre(SizeIs(3), SizeIs(3)));
  CheckGroups(program);
}

TEST(GroupNodesTest, ControlInputsOrder) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "b", "Exp", {"x", "^a"});
  Op(&small, "c", "Neg", {"x", "^b"});
  const Program program = ProgramOf(small, {"x"}, {"c"});
  EXPECT_THAT(NamesOfGroups(program), ElementsAre(IsEmpty(), ElementsAre("a"), ElementsAre("b"), ElementsAre("c")));
  CheckGroups(program);
}

// A node with a known shape separates no groups, but its control inputs still order the nodes after it.
TEST(GroupNodesTest, SkippedNodesOrderByControlEdgesOnly) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "none", "Exp", {"a"});
  Op(&small, "b", "Mul", {"a", "none"});
  Op(&small, "e", "Exp", {"x"});
  Op(&small, "no_data", "Exp", {"a", "^e"});
  Op(&small, "c", "Mul", {"b", "no_data"});
  EXPECT_THAT(NamesOfGroups(ProgramOf(small, {"x"}, {"b"})), ElementsAre(IsEmpty(), ElementsAre("a", "b")));
  const Program program = ProgramOf(small, {"x"}, {"c"});
  EXPECT_THAT(NamesOfGroups(program), ElementsAre(ElementsAre("e"), ElementsAre("a", "b", "c")));
  CheckGroups(program);
}

TEST(GroupNodesTest, RandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    SmallGraph small;
    small.Placeholder("x", DType::kFloat, {2});
    std::vector<std::string> names = {"x"};
    const auto any = [&] { return names[random() % names.size()]; };
    const int count = 1 + static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat(random() % 8 == 0 ? "n" : "v", i);
      std::vector<std::string> inputs = {any()};
      const char* op = random() % 2 == 0 ? "Exp" : "Neg";
      if (random() % 2 == 0) {
        inputs.push_back(any());
        op = random() % 2 == 0 ? "Sub" : "Mul";
      }
      if (random() % 4 == 0) {
        if (const std::string control = any(); control != "x") inputs.push_back("^" + control);
      }
      Op(&small, name, op, inputs);
      names.push_back(name);
    }
    CheckGroups(ProgramOf(small, {"x"}, {names.begin() + 1, names.end()}));
    ASSERT_FALSE(HasFailure()) << "in round " << round;
  }
}

// The bound is a hundred times the cost of a linear walk and a hundredth of that of a quadratic one.
TEST(GroupNodesTest, LargeGraphsAreLinear) {
  constexpr int kCount = 100'000;
  const auto check = [](const SmallGraph& small, const std::vector<std::string>& fetches, size_t num_groups) {
    const Program program = ProgramOf(small, {"x"}, fetches);
    const std::vector<Runner> runners = RunnersOf(program);
    const absl::Time start = absl::Now();
    EXPECT_THAT(GroupNodes(program, runners), SizeIs(num_groups));
    EXPECT_LT(absl::ToDoubleSeconds(absl::Now() - start), 10);
  };
  SmallGraph chain, fan;
  chain.Placeholder("x", DType::kFloat, {2});
  fan.Placeholder("x", DType::kFloat, {2});
  Op(&fan, "top", "Neg", {"x"});
  std::string last = "x";
  std::vector<std::string> leaves;
  for (int i = 0; i < kCount; ++i) {
    const std::string name = absl::StrCat("v", i);
    Op(&chain, name, i % 2 == 0 ? "Exp" : "Neg", {last});
    Op(&fan, name, i % 2 == 0 ? "Exp" : "Neg", {"top"});
    last = name;
    leaves.push_back(name);
  }
  check(chain, {last}, kCount);
  check(fan, leaves, 3);
}

// The following tests cover the partitions that the delegate receives.

std::vector<std::string> NodesOf(const Partition& partition) {
  std::vector<std::string> names;
  for (const DelegateNode& node : partition.nodes) names.emplace_back(node.node->name());
  return names;
}

// Runs the graph with the delegate and without it. The results must be equal.
std::vector<Partition> RunBoth(const SmallGraph& small, const std::vector<std::string>& feeds,
                               const std::vector<std::string>& fetches, const std::vector<Tensor>& inputs,
                               PlanReport* report = nullptr) {
  const auto delegate = std::make_shared<ArithmeticDelegate>();
  SessionOptions options;
  options.delegate = delegate;
  const auto with = Session::Create(small.graph(), feeds, fetches, options);
  const auto without = Session::Create(small.graph(), feeds, fetches);
  EXPECT_TRUE(with.ok()) << with.status();
  if (!with.ok()) return {};
  for (int round = 0; round < 2; ++round) {
    const auto found = (*with)->Run(inputs), expected = (*without)->Run(inputs);
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(expected.ok()) << expected.status();
    if (!found.ok() || !expected.ok()) return {};
    for (size_t i = 0; i < fetches.size(); ++i) {
      EXPECT_EQ((*found)[i].shape(), (*expected)[i].shape());
      EXPECT_THAT(ToVector((*found)[i]), Pointwise(NanSensitiveFloatEq(), ToVector((*expected)[i]))) << fetches[i];
    }
  }
  if (report != nullptr) *report = (*with)->report();
  return delegate->compiled();
}

TEST(DelegationTest, SeveralInputsAndOutputs) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  small.Placeholder("y", DType::kFloat, {2});
  small.Const("two", Floats({}, {2}));
  Op(&small, "sum", "AddV2", {"x", "y"});
  Op(&small, "twice", "Mul", {"sum", "two"});
  Op(&small, "minus", "Neg", {"twice"});
  Op(&small, "power", "Exp", {"sum"});
  PlanReport report;
  const auto partitions = RunBoth(small, {"x", "y"}, {"minus", "power", "twice", "minus"},
                                  {Floats({2}, {1, 2}), Floats({2}, {3, 5})}, &report);
  ASSERT_THAT(partitions, SizeIs(1));
  EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("sum", "twice", "minus"));
  EXPECT_THAT(partitions[0].inputs, SizeIs(2));
  EXPECT_THAT(partitions[0].outputs, SizeIs(3)) << "one is read outside, one is fetched and read inside, one twice";
  EXPECT_EQ(report.num_steps, 2);
  ASSERT_THAT(report.delegation.partitions, SizeIs(1));
  EXPECT_THAT(report.delegation.partitions[0].pieces, ElementsAre("loops over 3 nodes"));
  ASSERT_THAT(report.delegation.left, SizeIs(1));
  EXPECT_EQ(report.delegation.left[0].node, "power");
  EXPECT_EQ(report.delegation.left[0].reason, "does not compute Exp");
}

// Reads of shapes are computed while planning: they neither split the partition nor keep the tensor alive.
TEST(DelegationTest, ReadsOfShapesNeitherSplitNorKeep) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  Op(&small, "a", "Neg", {"x"});
  small.Add("shape", "Shape", {"a"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"out_type", AttrValue::Type(DType::kInt32)}});
  small.Const("half", Floats({}, {0.5f}));
  small.Add("halves", "Fill", {"shape", "half"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"index_type", AttrValue::Type(DType::kInt32)}});
  Op(&small, "b", "Mul", {"a", "halves"});
  Op(&small, "unread", "Neg", {"b"});
  const auto partitions = RunBoth(small, {"x"}, {"b"}, {Floats({3}, {1, -2, 4})});
  ASSERT_THAT(partitions, SizeIs(1));
  EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("a", "b"));
  EXPECT_THAT(partitions[0].outputs, SizeIs(1));
}

// A node of which only the shape is read is not run.
TEST(DelegationTest, LeavesOutWhatOnlyShapesNeed) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  Op(&small, "a", "Neg", {"x"});
  small.Add("shape", "Shape", {"a"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"out_type", AttrValue::Type(DType::kInt32)}});
  small.Add("size", "Cast", {"shape"},
            {{"SrcT", AttrValue::Type(DType::kInt32)}, {"DstT", AttrValue::Type(DType::kFloat)}});
  Op(&small, "b", "Relu", {"x"});
  PlanReport report;
  const auto partitions = RunBoth(small, {"x"}, {"size", "b"}, {Floats({3}, {1, -2, 4})}, &report);
  ASSERT_THAT(partitions, SizeIs(1));
  EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("b"));
  EXPECT_THAT(report.delegation.left, IsEmpty());
  EXPECT_THAT(RunBoth(small, {"x"}, {"size"}, {Floats({3}, {1, -2, 4})}), IsEmpty());
}

TEST(DelegationTest, FeedsOfInnerTensorsAndFetchesOfFedOnes) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "b", "Relu", {"a"});
  Op(&small, "c", "Mul", {"b", "a"});
  const auto partitions = RunBoth(small, {"b", "x"}, {"c", "b", "x", "a"}, {Floats({2}, {5, 6}), Floats({2}, {1, 2})});
  ASSERT_THAT(partitions, SizeIs(1));
  EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("a", "c"));
  EXPECT_THAT(partitions[0].inputs, SizeIs(2));
  EXPECT_THAT(partitions[0].outputs, SizeIs(2));
}

TEST(DelegationTest, ConstantsAreKnownInsideAndOutside) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  small.Const("c", Floats({2}, {3, 4}));
  Op(&small, "folded", "Mul", {"c", "c"});
  Op(&small, "a", "AddV2", {"x", "folded"});
  Op(&small, "b", "Sub", {"a", "folded"});
  const auto partitions = RunBoth(small, {"x"}, {"a", "b", "folded", "c"}, {Floats({2}, {1, 2})});
  ASSERT_THAT(partitions, SizeIs(1));
  EXPECT_THAT(partitions[0].inputs, SizeIs(1)) << "what is known is no input";
  const DelegateTensor& known = partitions[0].tensors[partitions[0].nodes[0].inputs[1]];
  ASSERT_TRUE(known.constant.has_value());
  EXPECT_THAT(ToVector(*known.constant), ElementsAre(9, 16));
}

TEST(DelegationTest, EmptyTensors) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "b", "Exp", {"a"});
  EXPECT_THAT(RunBoth(small, {"x"}, {"b", "a"}, {Floats({0}, {})}), SizeIs(1));
}

// Nodes after a shape that is known only during the run stay with the kernels; nodes before it are delegated.
TEST(DelegationTest, DynamicShapesInAPartOfTheGraph) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  small.Placeholder("dims", DType::kInt32, {kUnknownDim});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "b", "Relu", {"a"});
  small.Add("reshape", "Reshape", {"a", "dims"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  Op(&small, "c", "Neg", {"reshape"});
  PlanReport report;
  const auto partitions = RunBoth(small, {"x", "dims"}, {"b", "c"},
                                  {Floats({4}, {1, -2, 3, -4}), Tensor::FromVector<int32_t>({2}, {2, 2})}, &report);
  ASSERT_THAT(partitions, SizeIs(1));
  EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("a", "b"));
  ASSERT_THAT(report.delegation.left, SizeIs(2));
  EXPECT_EQ(report.delegation.left[0].reason, "its shape follows from the value of input 1");
  EXPECT_EQ(report.delegation.left[1].reason, "its shapes are known only during the run");
}

// A single node behind a branch is not worth a cluster.
TEST(DelegationTest, SingleNodesBehindBranchesStayWithTheKernels) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  small.Placeholder("is", DType::kBool, {});
  Op(&small, "a", "Neg", {"x"});
  Op(&small, "switch", "Switch", {"a", "is"});
  Op(&small, "no", "Neg", {"switch"});
  Op(&small, "yes", "Relu", {"switch:1"});
  small.Add("merge", "Merge", {"no", "yes"}, {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(2)}});
  Op(&small, "after", "Neg", {"merge"});
  Op(&small, "beside", "Neg", {"a"});
  PlanReport report;
  for (const bool is : {false, true}) {
    const std::vector<Partition> partitions =
        RunBoth(small, {"x", "is"}, {"after", "beside"}, {Floats({2}, {1, -2}), Tensor::Scalar<bool>(is)}, &report);
    ASSERT_THAT(partitions, SizeIs(1));
    EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("a", "beside"));
  }
  std::map<std::string, std::string> reasons;
  for (const DelegationReport::Left& left : report.delegation.left) reasons[left.node] = left.reason;
  const std::string dynamic = "its shapes are known only during the run";
  const std::string flow = "decides in V1 control flow what runs next";
  EXPECT_THAT(reasons, ElementsAre(Pair("after", dynamic), Pair("merge", flow), Pair("no", dynamic),
                                   Pair("switch", flow), Pair("yes", dynamic)));
}

// while (v < limit) v = v + step, on the output of a partition; the step is constant within the loop.
TEST(DelegationTest, LoopsRunAfterTheStaticParts) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Const("limit", Floats({}, {10}));
  const auto enter = [&](const std::string& name, const std::string& input, bool is_constant) {
    small.Add(name, "Enter", {input},
              {{"T", AttrValue::Type(DType::kFloat)},
               {"frame_name", AttrValue::String("loop")},
               {"is_constant", AttrValue::Bool(is_constant)}});
  };
  Op(&small, "start", "Neg", {"x"});
  enter("enter", "start", false);
  enter("enter_limit", "limit", true);
  small.Add("merge", "Merge", {"enter", "enter"}, {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(2)}});
  Op(&small, "less", "Less", {"merge", "enter_limit"});
  small.Add("cond", "LoopCond", {"less"}, {});
  Op(&small, "switch", "Switch", {"merge", "cond"});
  small.Const("step", Floats({}, {3}));
  small.mutable_graph().AddControlInput(small.graph().Find("step"), small.graph().Find("switch"));
  Op(&small, "twice", "Mul", {"step", "step"});
  Op(&small, "body", "AddV2", {"switch:1", "twice"});
  Op(&small, "next", "NextIteration", {"body"});
  small.mutable_graph().SetInput(small.graph().Find("merge"), 1, {small.graph().Find("next"), 0});
  Op(&small, "exit", "Exit", {"switch"});
  Op(&small, "y", "AddV2", {"exit", "start"});
  Op(&small, "z", "Mul", {"start", "start"});
  for (const float x : {-1.0f, -100.0f, 50.0f}) {
    const std::vector<Partition> partitions = RunBoth(small, {"x"}, {"y", "z"}, {Floats({}, {x})});
    ASSERT_THAT(partitions, SizeIs(1));
    EXPECT_THAT(NodesOf(partitions[0]), ElementsAre("start", "z"));
  }
}

TEST(DelegationTest, EffectsStayWithTheKernelsAndInOrder) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {1});
  small.Const("yes", Tensor::Scalar<bool>(true));
  Op(&small, "a", "Neg", {"x"});
  small.Add("assert", "Assert", {"yes", "a"}, {{"T", AttrValue::TypeList({DType::kFloat})}});
  Op(&small, "b", "Neg", {"a", "^assert"});
  PlanReport report;
  EXPECT_THAT(RunBoth(small, {"x"}, {"b"}, {Floats({1}, {1})}, &report), SizeIs(2)) << "one before and one after";
  ASSERT_THAT(report.delegation.left, SizeIs(1));
  EXPECT_EQ(report.delegation.left[0].reason, "does more than its outputs show");
}

TEST(DelegationTest, RandomGraphsComputeTheSame) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    SmallGraph small;
    small.Placeholder("x", DType::kFloat, {3});
    small.Const("c", Floats({3}, {0.5f, -1, 2}));
    std::vector<std::string> names = {"x", "c"};
    const auto any = [&] { return names[random() % names.size()]; };
    const char* const kUnary[] = {"Neg", "Relu", "Tanh", "Identity"};
    const char* const kBinary[] = {"AddV2", "Mul", "Sub", "Maximum"};
    for (int i = 0; i < 20; ++i) {
      const std::string name = absl::StrCat("v", i);
      if (random() % 2 == 0) {
        Op(&small, name, kUnary[random() % 4], {any()});
      } else {
        Op(&small, name, kBinary[random() % 4], {any(), any()});
      }
      names.push_back(name);
    }
    RunBoth(small, {"x"}, {names.back(), any(), any()}, {Floats({3}, {0.25f, -0.5f, 1})});
    ASSERT_FALSE(HasFailure()) << "in round " << round;
  }
}

}  // namespace
}  // namespace permafrost

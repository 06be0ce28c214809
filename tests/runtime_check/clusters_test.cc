// Tests of clusters: nodes behind branches, in loops and behind shapes that depend on values are delegated, with the
// same results as those of the reference kernels.
#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/planning/cluster.h"
#include "runtime_check/planning/flow_conditions.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/arithmetic_delegate.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::NanSensitiveFloatEq;
using testing::Pointwise;
using testing::SizeIs;

class FlowGraph : public SmallGraph {
 public:
  void Merge(const std::string& name, const std::vector<std::string>& inputs) {
    Add(name, "Merge", inputs,
        {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(static_cast<int64_t>(inputs.size()))}});
  }
  void Enter(const std::string& name, const std::string& input, const std::string& frame, bool is_constant) {
    Add(name, "Enter", {input},
        {{"T", AttrValue::Type(DType::kFloat)},
         {"frame_name", AttrValue::String(frame)},
         {"is_constant", AttrValue::Bool(is_constant)}});
  }
  // Starts a loop over `variables`, the first of which is a scalar: while (first < limit). Returns the variables in the
  // body; CloseLoop ends it.
  std::vector<std::string> OpenLoop(const std::string& frame, const std::vector<std::string>& variables,
                                    const std::string& limit) {
    std::vector<std::string> in_body;
    Enter(frame + "/limit", limit, frame, true);
    for (size_t i = 0; i < variables.size(); ++i) {
      const std::string name = absl::StrCat(frame, "/", i);
      Enter(name + "/enter", variables[i], frame, false);
      Merge(name + "/merge", {name + "/enter", name + "/enter"});
    }
    Float(frame + "/less", "Less", {frame + "/0/merge", frame + "/limit"});
    Add(frame + "/cond", "LoopCond", {frame + "/less"}, {});
    for (size_t i = 0; i < variables.size(); ++i) {
      const std::string name = absl::StrCat(frame, "/", i);
      Float(name + "/switch", "Switch", {name + "/merge", frame + "/cond"});
      Float(name + "/exit", "Exit", {name + "/switch"});
      in_body.push_back(name + "/switch:1");
    }
    return in_body;
  }
  // Ends a loop: `results` are the variables of the next iteration. Returns the variables behind the loop.
  std::vector<std::string> CloseLoop(const std::string& frame, const std::vector<std::string>& results) {
    std::vector<std::string> exits;
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string name = absl::StrCat(frame, "/", i);
      Node* next = Float(name + "/next", "NextIteration", {results[i]});
      mutable_graph().SetInput(graph().Find(name + "/merge"), 1, {next, 0});
      exits.push_back(name + "/exit");
    }
    return exits;
  }
};

struct BothRuns {
  std::vector<std::vector<std::string>> partitions;  // Names of the compiled nodes, in order of compilation.
  PlanReport report;                                 // Of the session with the delegate.
};

std::vector<std::vector<std::string>> NamesOf(const std::vector<Partition>& partitions) {
  std::vector<std::vector<std::string>> names;
  for (const Partition& partition : partitions) {
    names.emplace_back();
    for (const DelegateNode& node : partition.nodes) names.back().emplace_back(node.node->name());
  }
  return names;
}

// Runs one session with the delegate and one without it on all inputs, twice. Results and errors must be equal.
BothRuns RunBoth(const SmallGraph& small, const std::vector<std::string>& feeds,
                 const std::vector<std::string>& fetches, const std::vector<std::vector<Tensor>>& inputs,
                 ArithmeticOptions delegate_options = {}, SessionOptions options = {}) {
  const auto without = Session::Create(small.graph(), feeds, fetches, options);
  const auto delegate = std::make_shared<ArithmeticDelegate>(delegate_options);
  options.delegate = delegate;
  const auto with = Session::Create(small.graph(), feeds, fetches, options);
  BothRuns result;
  EXPECT_TRUE(with.ok()) << with.status();
  EXPECT_TRUE(without.ok()) << without.status();
  if (!with.ok() || !without.ok()) return result;
  for (int round = 0; round < 2; ++round) {
    for (const std::vector<Tensor>& input : inputs) {
      const auto found = (*with)->Run(input), expected = (*without)->Run(input);
      EXPECT_EQ(found.status(), expected.status());
      if (!found.ok() || !expected.ok()) continue;
      for (size_t i = 0; i < fetches.size(); ++i) {
        EXPECT_EQ((*found)[i].shape(), (*expected)[i].shape());
        EXPECT_THAT(ToVector((*found)[i]), Pointwise(NanSensitiveFloatEq(), ToVector((*expected)[i]))) << fetches[i];
      }
    }
  }
  result.partitions = NamesOf(delegate->compiled());
  result.report = (*with)->FullReport();
  return result;
}

std::set<std::string> NamedNodes(const PlanReport& report) {
  std::set<std::string> names;
  for (const DelegationReport::Taken& taken : report.delegation.partitions) {
    names.insert(taken.nodes.begin(), taken.nodes.end());
  }
  for (const DelegationReport::Left& left : report.delegation.left) names.insert(left.node);
  return names;
}

Tensor Bool(bool value) { return Tensor::Scalar<bool>(value); }

// Each branch has two nodes, and so has the part behind the Merge.
class Branches : public FlowGraph {
 public:
  Branches() {
    Placeholder("x", DType::kFloat, {2});
    Placeholder("is", DType::kBool, {});
    Const("two", Floats({}, {2}));
    Float("a", "Neg", {"x"});
    Float("switch", "Switch", {"a", "is"});
    Float("two_switch", "Switch", {"two", "is"});
    Float("no1", "Neg", {"switch"});
    Float("no2", "Mul", {"no1", "two_switch"});
    Float("yes1", "Relu", {"switch:1"});
    Float("yes2", "AddV2", {"yes1", "two_switch:1"});
    Merge("merge", {"no2", "yes2"});
    Float("after1", "Neg", {"merge"});
    Float("after2", "AddV2", {"after1", "a"});
  }
};

TEST(ClustersTest, BranchesAndWhatFollowsAreDelegated) {
  const Branches small;
  const Tensor x = Floats({2}, {1, -2});
  const BothRuns both = RunBoth(small, {"x", "is"}, {"after2"}, {{x, Bool(false)}, {x, Bool(true)}});
  EXPECT_THAT(both.partitions, ElementsAre(ElementsAre("a"), ElementsAre("no1", "no2"), ElementsAre("after1", "after2"),
                                           ElementsAre("yes1", "yes2")));
  EXPECT_THAT(NamedNodes(both.report),
              ElementsAre("a", "after1", "after2", "merge", "no1", "no2", "switch", "two_switch", "yes1", "yes2"));
}

TEST(ClustersTest, NodesThatNoRunReachesAreNamed) {
  const Branches small;
  const BothRuns both = RunBoth(small, {"x", "is"}, {"after2"}, {{Floats({2}, {1, -2}), Bool(true)}});
  EXPECT_THAT(NamedNodes(both.report), Contains("no1"));
  for (const DelegationReport::Left& left : both.report.delegation.left) {
    if (left.node != "no1" && left.node != "no2") continue;
    EXPECT_EQ(left.reason, "no run has reached it, so its shapes are unknown");
  }
}

TEST(ClustersTest, LoopsOfAnyNumberOfIterations) {
  FlowGraph small;
  small.Placeholder("x", DType::kFloat, {3});
  small.Placeholder("limit", DType::kFloat, {});
  small.Const("one", Floats({}, {1}));
  small.Const("zero", Floats({}, {0}));
  const auto body = small.OpenLoop("loop", {"zero", "x", "x"}, "limit");
  small.Enter("step", "one", "loop", true);
  small.Float("count", "AddV2", {body[0], "step"});
  small.Float("b1", "Neg", {body[1]});
  small.Float("b2", "AddV2", {"b1", body[2]});
  small.Float("b3", "Mul", {"b2", body[0]});
  const auto exits = small.CloseLoop("loop", {"count", "b3", "b1"});
  small.Float("after1", "Neg", {exits[1]});
  small.Float("after2", "Mul", {"after1", exits[2]});
  std::vector<std::vector<Tensor>> inputs;
  for (const float limit : {5.0f, 0.0f, 1.0f, -3.0f}) inputs.push_back({Floats({3}, {1, -2, 3}), Floats({}, {limit})});
  const BothRuns both = RunBoth(small, {"x", "limit"}, {"after2", exits[0]}, inputs);
  // The condition of the whole loop is known, so the counter belongs to the body.
  EXPECT_THAT(both.partitions, ElementsAre(ElementsAre("count", "b1", "b2", "b3"), ElementsAre("after1", "after2")));
}

// A growing sequence is compiled a bounded number of times.
TEST(ClustersTest, ShapesThatChangeInEachIteration) {
  FlowGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  small.Placeholder("limit", DType::kFloat, {});
  small.Const("one", Floats({}, {1}));
  small.Const("zero", Floats({}, {0}));
  small.Const("axis", Tensor::Scalar<int32_t>(0));
  const auto body = small.OpenLoop("loop", {"zero", "x"}, "limit");
  small.Enter("step", "one", "loop", true);
  small.Add("axis_in", "Enter", {"axis"},
            {{"T", AttrValue::Type(DType::kInt32)},
             {"frame_name", AttrValue::String("loop")},
             {"is_constant", AttrValue::Bool(true)}});
  small.Float("count", "AddV2", {body[0], "step"});
  small.Float("b1", "Neg", {body[1]});
  small.Float("b2", "Relu", {"b1"});
  small.Add(
      "join", "ConcatV2", {"b2", body[1], "axis_in"},
      {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(2)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
  const auto exits = small.CloseLoop("loop", {"count", "join"});
  const BothRuns both = RunBoth(small, {"x", "limit"}, {exits[1]}, {{Floats({1}, {-1}), Floats({}, {11})}});
  EXPECT_GE(both.partitions.size(), 4u);
  EXPECT_LE(both.partitions.size(), 16u);
  EXPECT_THAT(NamedNodes(both.report), testing::IsSupersetOf({"b1", "b2", "join"}));
}

TEST(ClustersTest, BehindShapesThatDependOnValues) {
  FlowGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  small.Placeholder("dims", DType::kInt32, {kUnknownDim});
  small.Float("a", "Neg", {"x"});
  const auto reshape = [&](const std::string& name, const std::string& input) {
    small.Add(name, "Reshape", {input, "dims"},
              {{"T", AttrValue::Type(DType::kFloat)}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  };
  reshape("r1", "a");
  small.Float("b1", "Neg", {"r1"});
  small.Float("b2", "AddV2", {"b1", "r1"});
  // Inside the cluster this shape is unknown again, so the nodes behind it make a cluster inside the cluster.
  small.Add("where", "Where", {"b2"}, {{"T", AttrValue::Type(DType::kFloat)}});
  small.Add("cast", "Cast", {"where"},
            {{"SrcT", AttrValue::Type(DType::kInt64)}, {"DstT", AttrValue::Type(DType::kFloat)}});
  small.Float("c1", "Neg", {"cast"});
  small.Float("c2", "AddV2", {"c1", "c1"});
  const auto dims = [](int32_t a, int32_t b) { return Tensor::FromVector<int32_t>({2}, {a, b}); };
  const Tensor x = Floats({4}, {1, 0, 3, -4});
  const BothRuns both = RunBoth(small, {"x", "dims"}, {"b2", "c2"}, {{x, dims(2, 2)}, {x, dims(1, 4)}});
  EXPECT_THAT(both.partitions, Contains(ElementsAre("b1", "b2")));
  EXPECT_THAT(both.partitions, Contains(ElementsAre("c1", "c2")));
  EXPECT_THAT(NamedNodes(both.report), ElementsAre("a", "b1", "b2", "c1", "c2", "cast", "r1", "where"));
}

// More shapes that depend on values than clusters nest: the rest runs one node at a time.
TEST(ClustersTest, LongChainsOfUnknownShapes) {
  FlowGraph small;
  small.Placeholder("x", DType::kFloat, {4});
  std::string last = "x";
  for (int i = 0; i < 300; ++i) {
    const auto name = [&](const char* text) { return absl::StrCat(text, i); };
    small.Add(name("where"), "Where", {last}, {{"T", AttrValue::Type(DType::kFloat)}});
    small.Add(name("cast"), "Cast", {name("where")},
              {{"SrcT", AttrValue::Type(DType::kInt64)}, {"DstT", AttrValue::Type(DType::kFloat)}});
    small.Float(name("neg"), "Neg", {name("cast")});
    small.Float(last = name("relu"), "AddV2", {name("neg"), name("cast")});
  }
  EXPECT_THAT(RunBoth(small, {"x"}, {last}, {{Floats({4}, {1, 0, 2, 3})}}).partitions, Contains(SizeIs(2)));
}

// The two Switch nodes have different predicates, so "both" may be dead where "left1" is alive.
TEST(ClustersTest, DeadInputsOfOneNodeDoNotKillItsNeighbours) {
  FlowGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  small.Placeholder("p", DType::kBool, {});
  small.Placeholder("q", DType::kBool, {});
  small.Float("sp", "Switch", {"x", "p"});
  small.Float("sq", "Switch", {"x", "q"});
  small.Float("left1", "Neg", {"sp:1"});
  small.Float("left2", "Relu", {"left1"});
  small.Float("both", "AddV2", {"left1", "sq:1"});
  small.Float("both2", "Neg", {"both"});
  small.Float("otherwise", "Relu", {"sq"});
  small.Merge("merge", {"both2", "otherwise"});
  small.Float("end", "AddV2", {"merge", "left2"});
  std::vector<std::vector<Tensor>> inputs;
  for (const bool p : {true, false}) {
    for (const bool q : {true, false}) inputs.push_back({Floats({2}, {1, -2}), Bool(p), Bool(q)});
  }
  EXPECT_THAT(RunBoth(small, {"x", "p", "q"}, {"end"}, inputs).partitions, Contains(ElementsAre("left1", "left2")));
}

TEST(ClustersTest, APartitionThatFailsFallsBackAlone) {
  const Branches small;
  ArithmeticOptions options;
  options.runs_before_failure = 1;  // "a" runs, and the branch fails.
  const BothRuns both = RunBoth(small, {"x", "is"}, {"after2"}, {{Floats({2}, {1, -2}), Bool(true)}}, options);
  EXPECT_THAT(both.report.delegation.failure, HasSubstr("the device is gone"));
}

TEST(ClustersTest, TheMemoryLimitIsThatOfTheNodes) {
  const Branches small;
  ArithmeticOptions options;
  options.constant_bytes = 1 << 20;
  SessionOptions session_options;
  session_options.memory_limit = 1 << 16;
  RunBoth(small, {"x", "is"}, {"after2"}, {{Floats({2}, {1, -2}), Bool(true)}}, options, session_options);
}

// Builds random graphs with branches and nested loops.
class RandomFlow : public FlowGraph {
 public:
  explicit RandomFlow(uint32_t seed) : random_(seed) {
    Placeholder("x", DType::kFloat, {2});
    for (const char* name : {"p0", "p1"}) Placeholder(name, DType::kBool, {});
    Const("zero", Floats({}, {0}));
    Const("one", Floats({}, {1}));
    Const("limit", Floats({}, {2}));
    Scope scope = {{"x"}, {"p0", "p1"}, "zero", "one", "limit"};
    AddNodes(&scope, 24, 0);
    tensors_ = scope.tensors;
  }

  // Tensors outside of loops.
  const std::vector<std::string>& tensors() const { return tensors_; }

 private:
  // What the nodes of a frame may read.
  struct Scope {
    std::vector<std::string> tensors, predicates;
    std::string zero, one, limit;
  };

  std::string Any(const std::vector<std::string>& names) { return names[random_() % names.size()]; }

  void AddNodes(Scope* scope, int count, int depth) {
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat("n", next_name_++);
      std::vector<std::string>& tensors = scope->tensors;
      switch (random_() % 10) {
        case 0:
        case 1:
          tensors.push_back(name);
          Float(name, "Switch", {Any({tensors.begin(), tensors.end() - 1}), Any(scope->predicates)});
          tensors.push_back(name + ":1");
          break;
        case 2:
        case 3: {
          const std::string a = Any(tensors), b = Any(tensors);
          Merge(name, {a, b});
          tensors.push_back(name);
          break;
        }
        case 4:
          if (depth < 2) AddLoop(scope, name, depth);
          break;
        case 5:
          Float(name, "Identity", {Any(tensors)});
          tensors.push_back(name);
          break;
        case 6:
          Float(name, "Tanh", {Any(tensors)});
          tensors.push_back(name);
          break;
        case 7:
          Float(name, "Neg", {Any(tensors)});
          tensors.push_back(name);
          break;
        default:
          Float(name, random_() % 2 == 0 ? "AddV2" : "Mul", {Any(tensors), Any(tensors)});
          tensors.push_back(name);
      }
    }
  }

  void AddLoop(Scope* scope, const std::string& frame, int depth) {
    const std::vector<std::string> variables = {scope->zero, Any(scope->tensors), Any(scope->tensors)};
    const std::vector<std::string> body = OpenLoop(frame, variables, scope->limit);
    Scope inner = {{body[1], body[2]}, {}, frame + "/zero", frame + "/one", frame + "/limit"};
    Enter(inner.zero, scope->zero, frame, true);
    Enter(inner.one, scope->one, frame, true);
    Enter(frame + "/outer", Any(scope->tensors), frame, true);
    inner.tensors.push_back(frame + "/outer");
    const std::string predicate = frame + "/p";
    Add(predicate, "Enter", {Any(scope->predicates)},
        {{"T", AttrValue::Type(DType::kBool)},
         {"frame_name", AttrValue::String(frame)},
         {"is_constant", AttrValue::Bool(true)}});
    inner.predicates = {predicate};
    Float(frame + "/first", "Less", {body[0], inner.one});
    inner.predicates.push_back(frame + "/first");
    AddNodes(&inner, 8, depth + 1);
    Float(frame + "/count", "AddV2", {body[0], inner.one});
    // Dead in the last iteration, which ends the loop.
    for (const char* result : {"/r1", "/r2"}) Float(frame + result, "AddV2", {Any(inner.tensors), body[0]});
    const auto exits = CloseLoop(frame, {frame + "/count", frame + "/r1", frame + "/r2"});
    scope->tensors.push_back(exits[1]);
    scope->tensors.push_back(exits[2]);
  }

  std::mt19937 random_;
  int next_name_ = 0;
  std::vector<std::string> tensors_;
};

TEST(ClustersTest, RandomGraphsComputeTheSame) {
  SessionOptions single;
  single.num_threads = 1;
  single.loop_limits.most_iterations = 1000;
  size_t num_compared = 0, num_large = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const RandomFlow small(seed);
    for (const bool p : {true, false}) {
      for (const bool q : {true, false}) {
        const std::vector<Tensor> input = {Floats({2}, {0.5, -2}), Bool(p), Bool(q)};
        // A run with dead outputs is an error, so first those that are alive are found.
        std::vector<std::string> alive;
        for (const std::string& tensor : small.tensors()) {
          const auto session = Session::Create(small.graph(), {"x", "p0", "p1"}, {tensor}, single);
          ASSERT_TRUE(session.ok()) << session.status();
          const auto outputs = (*session)->Run(input);
          if (outputs.ok()) alive.push_back(tensor);
        }
        if (alive.empty()) continue;
        num_compared += alive.size();
        const BothRuns both = RunBoth(small, {"x", "p0", "p1"}, alive, {input}, {}, single);
        for (const auto& partition : both.partitions) num_large += partition.size() > 1 ? 1 : 0;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(num_compared, 1000u);
  EXPECT_GT(num_large, 300u);
}

// Equal conditions must mean equally dead: checked for all nodes outside of loops by running them.
TEST(FlowConditionsTest, ABranchThatEndsLeavesTheConditionAround) {
  const Branches small;
  static const auto* const kLookup = new KernelLookup(&FindKernel);
  static const auto* const kNoRegions = new RegionReader;
  MemoryBudget budget(int64_t{1} << 40);
  const std::vector<std::string> feeds = {"x", "is"}, fetches = {"after2"};
  const auto program = BuildProgram(small.graph(), {feeds, fetches, {}}, {*kLookup, &budget, nullptr, *kNoRegions});
  ASSERT_TRUE(program.ok()) << program.status();
  FlowConditions conditions(*program);
  const auto of = [&](const std::string& name) {
    for (size_t i = 0; i < program->nodes.size(); ++i) {
      if (program->nodes[i].node->name() == name) return conditions.OfNode(static_cast<int>(i));
    }
    return -1;
  };
  EXPECT_EQ(of("a"), FlowConditions::kAlways);
  EXPECT_EQ(of("no1"), of("no2"));
  EXPECT_NE(of("no1"), of("yes1"));
  EXPECT_NE(of("no1"), FlowConditions::kAlways);
  EXPECT_EQ(of("merge"), FlowConditions::kAlways);
  EXPECT_EQ(of("after2"), FlowConditions::kAlways);
}

}  // namespace
}  // namespace permafrost

// Tests of sessions with several delegates: where nodes are placed, what the report says, and equal results.
#include "runtime_check/planning/placement.h"

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_list.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/arithmetic_delegate.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// An arithmetic delegate with a name, a speed, and the ops that it supports.
class Member final : public Delegate {
 public:
  Member(std::string name, DelegateSpeed speed, std::vector<std::string> ops, ArithmeticOptions options = {})
      : inner_(options), name_(std::move(name)), speed_(speed), ops_(std::move(ops)) {}

  absl::string_view name() const override { return name_; }
  absl::Status Supports(const Partition& single) const override {
    const absl::string_view op = single.nodes[0].node->op().name();
    for (const std::string& known : ops_) {
      if (op == known) return inner_.Supports(single);
    }
    return absl::UnimplementedError(absl::StrCat("knows no ", op));
  }
  bool IsWorthwhile(const Partition& partition) const override { return inner_.IsWorthwhile(partition); }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int num_threads) const override {
    return inner_.Compile(partition, num_threads);
  }
  DelegateSpeed Speed(int /*num_threads*/) const override { return speed_; }
  double EstimateNanoseconds(const Partition& single) const override {
    return estimate_ != nullptr ? estimate_(single) : -1;
  }
  void set_estimate(std::function<double(const Partition&)> estimate) { estimate_ = std::move(estimate); }
  size_t num_compiled() const { return inner_.compiled().size(); }

 private:
  ArithmeticDelegate inner_;
  std::string name_;
  DelegateSpeed speed_;
  std::vector<std::string> ops_;
  std::function<double(const Partition&)> estimate_;
};

class Choice final : public Delegate {
 public:
  explicit Choice(DelegateChoice choice) : choice_(std::move(choice)) {}
  absl::string_view name() const override { return "choice"; }
  absl::Status Supports(const Partition& /*single*/) const override { return absl::OkStatus(); }
  bool IsWorthwhile(const Partition& /*partition*/) const override { return false; }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& /*partition*/,
                                                             int /*num_threads*/) const override {
    return absl::InternalError("is several");
  }
  const DelegateChoice* choice() const override { return &choice_; }

 private:
  DelegateChoice choice_;
};

const std::vector<std::string> kAllOps = {"Mul", "AddV2", "Neg", "Relu"};

DelegateSpeed SpeedOf(double bytes_per_ns, double entry_ns, double transfer_bytes_per_ns) {
  DelegateSpeed speed;
  speed.bytes_per_ns = bytes_per_ns;
  speed.node_ns = 0;
  speed.entry_ns = entry_ns;
  speed.transfer_bytes_per_ns = transfer_bytes_per_ns;
  return speed;
}

// x -> 4 negations -> Sqrt(square) -> 4 negations.
constexpr int64_t kElements = 100000;
void Fill(SmallGraph* small) {
  small->Placeholder("x", DType::kFloat, {kElements});
  std::string last = "x";
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("neg", i);
    small->Float(name, "Neg", {last});
    last = name;
    if (i != 3) continue;
    small->Float("square", "Mul", {last, last});
    small->Float("root", "Sqrt", {"square"});
    last = "root";
  }
}

// Runs the graph and expects the outputs of the built-in kernels.
DelegationReport RunBoth(const SmallGraph& small, const std::string& fetch, DelegateChoice choice) {
  std::vector<float> values(kElements);
  std::mt19937 engine(7);
  for (float& value : values) value = std::uniform_real_distribution<float>(-2, 2)(engine);
  const Tensor x = Tensor::FromVector<float>({kElements}, std::move(values));
  const auto reference = Session::Create(small.graph(), {"x"}, {fetch});
  EXPECT_TRUE(reference.ok()) << reference.status();
  SessionOptions options;
  options.delegate = std::make_shared<const Choice>(std::move(choice));
  const auto session = Session::Create(small.graph(), {"x"}, {fetch}, options);
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok() || !reference.ok()) return {};
  const auto expected = (*reference)->Run({x}), actual = (*session)->Run({x});
  EXPECT_TRUE(actual.ok()) << actual.status();
  if (!actual.ok() || !expected.ok()) return {};
  EXPECT_TRUE((*actual)[0].bytes() == (*expected)[0].bytes());
  return (*session)->report().delegation;
}

std::vector<std::string> DelegatesOf(const DelegationReport& report) {
  std::vector<std::string> names;
  for (const auto& partition : report.partitions) {
    names.push_back(absl::StrCat(partition.delegate, " ", partition.nodes.size()));
  }
  return names;
}

std::shared_ptr<Member> Make(const std::string& name, DelegateSpeed speed, ArithmeticOptions options = {}) {
  return std::make_shared<Member>(name, speed, kAllOps, options);
}

TEST(PlacementTest, TakesTheFasterDelegate) {
  SmallGraph small;
  Fill(&small);
  const auto slow = Make("slow", SpeedOf(2, 1000, 0)), fast = Make("fast", SpeedOf(20, 1000, 0));
  for (const auto& order : {DelegateChoice{{slow, fast}}, DelegateChoice{{fast, slow}}}) {
    const DelegationReport report = RunBoth(small, "neg7", order);
    EXPECT_THAT(DelegatesOf(report), ElementsAre("fast 5", "fast 4"));
    ASSERT_THAT(report.left, SizeIs(1));
    EXPECT_EQ(report.left[0].node, "root");
  }
}

TEST(PlacementTest, PrefersTheFirstOfEquals) {
  SmallGraph small;
  Fill(&small);
  const auto a = Make("a", SpeedOf(10, 1000, 0)), b = Make("b", SpeedOf(10.2, 1000, 0));
  EXPECT_THAT(DelegatesOf(RunBoth(small, "neg7", {{a, b}})), ElementsAre("a 5", "a 4"));
  EXPECT_THAT(DelegatesOf(RunBoth(small, "neg7", {{b, a}})), ElementsAre("b 5", "b 4"));
}

// A device that is ten times as fast is not worth the way for four cheap nodes, but for forty.
TEST(PlacementTest, WeighsTransfers) {
  const auto device = Make("device", SpeedOf(100, 20000, 2)), host = Make("host", SpeedOf(10, 1000, 0));
  for (const int count : {4, 40}) {
    SmallGraph small;
    small.Placeholder("x", DType::kFloat, {kElements});
    for (int i = 0; i < count; ++i) {
      small.Float(absl::StrCat("n", i), "Neg", {i == 0 ? std::string("x") : absl::StrCat("n", i - 1)});
    }
    EXPECT_THAT(DelegatesOf(RunBoth(small, absl::StrCat("n", count - 1), {{device, host}})),
                ElementsAre(count == 4 ? "host 4" : "device 40"));
  }
}

// Only the expensive part goes to the device: the cheap nodes around it stay.
TEST(PlacementTest, PlacesPartsOfAGraph) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kElements});
  std::string last = "x";
  for (const char* name : {"a", "b", "heavy0", "heavy1", "c", "d"}) {
    small.Float(name, absl::StartsWith(name, "heavy") ? "Relu" : "Neg", {last});
    last = name;
  }
  const auto device = Make("device", SpeedOf(10, 20000, 4)), host = Make("host", SpeedOf(10, 1000, 0));
  host->set_estimate([](const Partition& single) { return single.nodes[0].node->op().name() == "Relu" ? 1e6 : 1e4; });
  device->set_estimate([](const Partition& single) { return single.nodes[0].node->op().name() == "Relu" ? 1e4 : 1e6; });
  const DelegationReport report = RunBoth(small, "d", {{device, host}});
  EXPECT_THAT(DelegatesOf(report), ElementsAre("host 2", "device 2", "host 2"));
  ASSERT_THAT(report.partitions, SizeIs(3));
  EXPECT_THAT(report.partitions[0].pieces[0],
              HasSubstr("placement: estimated 282 us for a run; alone: the built-in kernels "));
  EXPECT_THAT(report.partitions[0].pieces[0], HasSubstr("device 4.24 ms, host 2.04 ms"));
  EXPECT_THAT(report.partitions[1].pieces[0], HasSubstr("placed here by the estimate: 20 us, and "));
  EXPECT_THAT(report.partitions[1].pieces[0],
              HasSubstr("2 ms by host; 400000 bytes enter, 400000 leave, copied to the device and back"));
  EXPECT_THAT(report.partitions[2].pieces[0], HasSubstr("in the memory of the host"));
}

TEST(PlacementTest, LeavesNodesToTheKernels) {
  SmallGraph small;
  Fill(&small);
  const auto slow = Make("slow", SpeedOf(0.1, 1000, 0));
  EXPECT_THAT(DelegatesOf(RunBoth(small, "neg7", {{slow}})), ElementsAre("slow 5", "slow 4"));
  const DelegationReport report = RunBoth(small, "neg7", {{slow}, true});
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(10));
  EXPECT_THAT(report.left[0].reason, HasSubstr("placed there by the estimate: "));
  EXPECT_THAT(report.left[0].reason, HasSubstr(" by slow before entries and transfers"));
}

// A part that the preferred member fails to compile, or does not want, goes to the next one.
TEST(PlacementTest, PlacesAgainAfterAFailure) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions fails, is_picky;
  fails.fails_to_compile = true;
  is_picky.least_nodes = 5;
  const auto broken = Make("broken", SpeedOf(100, 0, 0), fails), picky = Make("picky", SpeedOf(50, 0, 0), is_picky);
  const auto last = Make("last", SpeedOf(10, 0, 0));
  EXPECT_THAT(DelegatesOf(RunBoth(small, "neg7", {{broken, last}})), ElementsAre("last 5", "last 4"));
  EXPECT_THAT(DelegatesOf(RunBoth(small, "neg7", {{broken, picky, last}})), ElementsAre("picky 5", "last 4"));
  // The partition that was compiled in the first attempt is kept.
  EXPECT_EQ(picky->num_compiled(), 1u);
  const DelegationReport report = RunBoth(small, "neg7", {{broken}});
  EXPECT_THAT(report.partitions, IsEmpty());
  EXPECT_THAT(report.left[0].reason, HasSubstr("broken: the delegate failed to compile its partition: "));
}

TEST(PlacementTest, SaysWhyEachMemberDeclines) {
  SmallGraph small;
  Fill(&small);
  const auto a = Make("a", {});
  const auto b = std::make_shared<Member>("b", DelegateSpeed(), std::vector<std::string>{"Neg"});
  const DelegationReport report = RunBoth(small, "neg7", {{a, b}});
  ASSERT_THAT(report.left, SizeIs(1));
  EXPECT_EQ(report.left[0].reason, "a: knows no Sqrt; b: knows no Sqrt");
}

// A partition that fails during a run: everything is computed with the built-in kernels.
TEST(PlacementTest, FallsBackDuringARun) {
  SmallGraph small;
  Fill(&small);
  ArithmeticOptions fails;
  fails.runs_before_failure = 1;
  const DelegationReport report = RunBoth(small, "neg7", {{Make("a", {}, fails), Make("b", SpeedOf(1, 0, 0))}});
  EXPECT_THAT(report.failure, HasSubstr("the device is gone"));
}

// Random graphs and speeds: the results are those of the built-in kernels.
TEST(PlacementTest, RandomGraphs) {
  std::mt19937 engine(3);
  const auto below = [&](int most) { return static_cast<int>(engine() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 40; ++i) {
    SmallGraph small;
    small.Placeholder("x", DType::kFloat, {kElements});
    std::vector<std::string> names = {"x"};
    const int count = 3 + below(25);
    for (int j = 0; j < count; ++j) {
      const std::string name = absl::StrCat("n", j), a = names[engine() % names.size()], b = names.back();
      const int op = below(5);
      if (op == 0) {
        small.Float(name, "Neg", {b});
      } else if (op == 1) {
        small.Float(name, "Sigmoid", {b});
      } else if (op == 2) {
        small.Float(name, "Relu", {b});
      } else {
        small.Float(name, "AddV2", {a, b});
      }
      names.push_back(name);
    }
    DelegateChoice choice;
    for (int j = 0; j <= below(3); ++j) {
      auto member = std::make_shared<Member>(absl::StrCat("m", j),
                                             SpeedOf(1 + below(50), below(20000), below(2) * (1 + below(10))),
                                             below(2) == 0 ? kAllOps : std::vector<std::string>{"AddV2", "Neg"});
      choice.members.push_back(std::move(member));
    }
    choice.includes_kernels = below(2) == 0;
    SCOPED_TRACE(i);
    EXPECT_EQ(RunBoth(small, names.back(), choice).failure, "");
  }
}

TEST(DelegateListTest, ParsesLists) {
  const auto problem = [](const std::string& text, const DelegateOptions& options = {}) {
    const auto made = MakeDelegates(text, options);
    return made.ok() ? std::string(made->get() == nullptr ? "null" : (*made)->name())
                     : std::string(made.status().message());
  };
  EXPECT_EQ(problem("reference"), "null");
  EXPECT_EQ(problem("onednn"), "onednn");
  EXPECT_EQ(problem("xnnpack,onednn"), "xnnpack,onednn");
  EXPECT_EQ(problem("onednn,xnnpack,reference"), "onednn,xnnpack,reference");
  EXPECT_EQ(problem("onednn,"), "found an empty name in the list of delegates");
  EXPECT_EQ(problem(","), "found an empty name in the list of delegates");
  EXPECT_EQ(problem("onednn,xnnpack,onednn"), "found 'onednn' twice in the list of delegates");
  EXPECT_EQ(problem("opencl,gpu"), "found 'gpu' twice in the list of delegates");
  EXPECT_EQ(problem("reference,onednn"), "found 'onednn' behind 'reference', expected the built-in kernels last");
  EXPECT_THAT(problem("onednn,onednm"), HasSubstr("no delegate 'onednm'; there are "));
  EXPECT_THAT(problem("onednn,./no.so"), HasSubstr("'./no.so': no such file"));
  DelegateOptions options;
  options.precision = "int8";
  EXPECT_THAT(problem("xnnpack,onednn", options), HasSubstr("found precision 'int8' with several delegates"));
  options.precision = "f64";
  EXPECT_THAT(problem("xnnpack,onednn", options), HasSubstr("found precision 'f64', which none of the delegates has"));
  std::string many = "onednn";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&many, ",./", i, ".so");
  EXPECT_EQ(problem(many), "found 21 delegates, expected at most 16");
}

}  // namespace
}  // namespace permafrost

// Tests the conversion of a float graph to eight bits with frozen ranges, using a log written by this project's
// runtime.
#include <algorithm>

#include "gtest/gtest.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/session.h"
#include "tests/transforms/golden_case.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr int kRuns = 3;
// Inputs of other runs than those in the log may exceed the ranges slightly.
constexpr double kTolerance = 0.1;

class RangeFreezingTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto cases = FindGoldenCases("tests/golden/quantize_nodes");
    ASSERT_TRUE(cases.ok()) << cases.status();
    for (const GoldenCase& golden : *cases) {
      if (golden.name != "conv_bias_relu") continue;
      auto graph = ReadGraphOf(golden);
      ASSERT_TRUE(graph.ok()) << graph.status();
      graph_ = *std::move(graph);
    }
    ASSERT_NE(graph_, nullptr) << "no case conv_bias_relu";
  }

  void Transform(absl::string_view text) {
    PassContext context;
    context.read_file = [this](absl::string_view) { return log_; };
    const auto reports = RunPipeline(&graph_, *ParsePipeline(text), &context);
    ASSERT_TRUE(reports.ok()) << reports.status();
  }

  Tensor Run(const Graph& graph, uint64_t seed) {
    SessionOptions options;
    options.print = [this](absl::string_view, absl::string_view text) { log_.append(text.data(), text.size()); };
    const auto session = Session::Create(graph, {"x"}, {"relu"}, std::move(options));
    const auto feeds = SeededInputs(graph.inputs(), {}, seed);
    EXPECT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run(*feeds);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? outputs->front() : Tensor();
  }

  int Count(Op op) const {
    int count = 0;
    for (const Node* node = graph_->first(); node != nullptr; node = node->next()) count += node->op() == op ? 1 : 0;
    return count;
  }

  std::unique_ptr<Graph> graph_;
  std::string log_;
};

TEST_F(RangeFreezingTest, TheLogOfOneGraphFreezesTheRangesOfTheOther) {
  const std::unique_ptr<Graph> original = graph_->Clone();
  Transform("quantize_nodes");
  ASSERT_EQ(Count(ops::kRequantizationRange), 2);
  const std::unique_ptr<Graph> quantized = graph_->Clone();

  Transform("insert_logging(op=RequantizationRange, show_name=true, message=\"__requant_min_max:\")");
  for (int seed = 0; seed < kRuns; ++seed) Run(*graph_, seed);
  EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 2 * kRuns) << log_;

  graph_ = quantized->Clone();
  Transform("freeze_requantization_ranges(min_max_log_file=log) strip_unused_nodes");
  EXPECT_EQ(Count(ops::kRequantizationRange), 0);
  const OutputDifference difference = CompareTensors(Run(*original, kRuns), Run(*graph_, kRuns));
  EXPECT_TRUE(difference.IsWithin(kTolerance)) << difference.ToString();
}

}  // namespace
}  // namespace permafrost

// Tests of simulated runs in half and bfloat16.
#include "tools/validation/half_simulation.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/ops/op_schema.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

void SetValues(Graph* graph, const char* name, std::vector<float> values) {
  graph->Find(name)->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({2}, std::move(values))));
}

HalfSimulation Simulated(const Graph& graph, DType dtype, std::vector<float> values) {
  std::vector<InputSet> sets = {{Tensor::FromVector<float>({2}, std::move(values))}};
  const std::unique_ptr<BatchSource> source = KeptBatches(std::move(sets), std::nullopt);
  absl::StatusOr<HalfSimulation> simulation = SimulateHalf(graph, dtype, *source, 1, SessionOptions());
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

// y = relu(x * w) * v
std::unique_ptr<Graph> Scaled(std::vector<float> w, std::vector<float> v) {
  std::unique_ptr<Graph> graph =
      GraphFromText("x = Placeholder()\nw = Const()\nv = Const()\na = Mul(x, w)\nb = Relu(a)\ny = Mul(b, v)");
  SetValues(graph.get(), "w", std::move(w));
  SetValues(graph.get(), "v", std::move(v));
  EXPECT_TRUE(graph->DeclareInterface({"x"}, {"y"}).ok());
  return graph;
}

TEST(HalfSimulation, NamesTheFirstNodeThatOverflows) {
  const auto graph = Scaled({40000, 40000}, {0.0001f, 0.0001f});
  const HalfSimulation simulation = Simulated(*graph, DType::kHalf, {1, 2});
  ASSERT_EQ(simulation.beyond.size(), 2u);
  EXPECT_EQ(simulation.beyond[0].name, "a");
  EXPECT_EQ(simulation.beyond[0].largest, 80000);
  EXPECT_EQ(simulation.beyond[1].name, "b");
  ASSERT_TRUE(simulation.lost.has_value());
  EXPECT_EQ(simulation.lost->name, "a");
  EXPECT_EQ(simulation.outputs[0].difference.num_nonfinite_mismatches, 1);
  EXPECT_TRUE(simulation.covers_inner_tensors);
}

TEST(HalfSimulation, Bfloat16HasTheRangeAndLessPrecision) {
  const auto graph = Scaled({40000, 40000}, {0.0001f, 0.0001f});
  const HalfSimulation simulation = Simulated(*graph, DType::kBFloat16, {1.01f, 2.03f});
  EXPECT_TRUE(simulation.beyond.empty());
  EXPECT_FALSE(simulation.lost.has_value());
  EXPECT_GT(simulation.outputs[0].difference.relative(), 1e-4);
  EXPECT_LT(simulation.outputs[0].difference.relative(), 0.02);
}

TEST(HalfSimulation, NamesTheFirstNodeWhoseValuesVanish) {
  const auto graph = Scaled({1e-5f, 1e-5f}, {1e4f, 1e4f});
  const HalfSimulation simulation = Simulated(*graph, DType::kHalf, {2e-3f, 2e-3f});
  EXPECT_TRUE(simulation.beyond.empty());
  ASSERT_TRUE(simulation.lost.has_value());
  EXPECT_EQ(simulation.lost->name, "a");  // 2e-8 is rounded to 0.
  EXPECT_EQ(simulation.outputs[0].difference.num_different, 2);
}

TEST(HalfSimulation, TheLargestHalfIsNotBeyond) {
  const auto graph = Scaled({1, 1}, {1, 1});
  EXPECT_TRUE(Simulated(*graph, DType::kHalf, {65504, 65519}).beyond.empty());
  EXPECT_EQ(Simulated(*graph, DType::kHalf, {65504, 65520}).beyond.size(), 4u);  // x, a, b and y.
}

TEST(HalfSimulation, WeightsAreRounded) {
  const auto graph = Scaled({1.0001f, 1}, {1, 1});
  const absl::StatusOr<RoundedGraph> rounded = RoundTensors(*graph, DType::kHalf);
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_EQ(rounded->tensors.size(), 6u);
  EXPECT_EQ(Simulated(*graph, DType::kHalf, {1, 1}).outputs[0].difference.num_different, 1);
}

}  // namespace
}  // namespace permafrost

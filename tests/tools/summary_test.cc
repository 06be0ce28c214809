// Tests of counting FLOPs, and of printing tensors and numbers as TensorFlow's tool does.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/graph_from_text.h"
#include "tools/summary/flops.h"
#include "tools/summary/summary_format.h"

namespace permafrost {
namespace {

std::string Values(const Tensor& tensor) {
  const std::string text = TensorText(tensor);
  const size_t start = text.find("values: ") + 8;
  return text.substr(start, text.size() - start - 1);
}

Tensor Floats(Shape shape) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 5;
  return Tensor::FromVector<float>(std::move(shape), std::move(values));
}

// The expected texts are the output of TensorFlow 2.21.
TEST(TensorText, IsThatOfTheOriginal) {
  EXPECT_EQ(TensorText(Floats({2})), "Tensor<type: float shape: [2] values: 0 0.2>");
  EXPECT_EQ(Values(Floats({4})), "0 0.2 0.4...");
  EXPECT_EQ(Values(Floats({3, 2})), "[0 0.2][0.4...]...");
  EXPECT_EQ(Values(Floats({1, 3})), "[0 0.2 0.4]");
  EXPECT_EQ(Values(Floats({1, 4})), "[0 0.2 0.4...]...");
  EXPECT_EQ(Values(Floats({4, 1})), "[0][0.2][0.4]...");
  EXPECT_EQ(Values(Floats({1, 1, 3, 4})), "[[[0 0.2 0.4...]]]...");
  EXPECT_EQ(Values(Floats({3, 1, 2, 2})), "[[[0 0.2][0.4...]]]...");
  EXPECT_EQ(Values(Floats({2, 0})), "");
  EXPECT_EQ(Values(Tensor::FromVector<float>({3}, {-0.0281234567f, 1e-8f, 3.14159274f})),
            "-0.028123457 1e-08 3.14159274");
  EXPECT_EQ(Values(Tensor::FromVector<float>({2}, {NAN, -INFINITY})), "nan -inf");
  EXPECT_EQ(Values(Tensor::FromVector<double>({1}, {1.0 / 3})), "0.33333333333333331");
  EXPECT_EQ(Values(Tensor::FromVector<uint8_t>({2}, {7, 255})), "7 255");
  EXPECT_EQ(Values(Tensor::FromStrings({}, {"ab\x01\"c"})), "ab\\001\\\"c");
}

TEST(HumanCount, IsThatOfTheOriginal) {
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(1913), "1.91k");
  EXPECT_EQ(HumanCount(22378102), "22.38M");
  EXPECT_EQ(HumanCount(5600000000), "5.60B");
  EXPECT_EQ(HumanCount(7000000000000), "7.00T");
}

TEST(Flops, CountsConvolutionsAndMatrixProducts) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\nf = Const()\nc = Conv2D(x, f)");
  graph->Find("x")->SetAttr("shape", AttrValue::OfShape({-1, 8, 8, 3}));
  graph->Find("f")->SetAttr("value", AttrValue::OfTensor(Floats({3, 3, 3, 4})));
  graph->Find("c")->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
  graph->Find("c")->SetAttr("padding", AttrValue::String("SAME"));
  const FlopsEstimate estimate = EstimateFlops(*graph);
  ASSERT_TRUE(estimate.status.ok()) << estimate.status;
  EXPECT_EQ(estimate.total, 4u * 4 * 4 * 3 * 3 * 3 * 2);
  EXPECT_EQ(estimate.num_unknown, 0u);
}

TEST(Flops, CountsFusedFormsAsWhatTheyFuse) {
  const std::unique_ptr<Graph> graph = GraphFromText(
      "x = Placeholder()\nf = Const()\nb = Const()\nc = _FusedConv2D(x, f, b)\nd = _FusedDepthwiseConv2dNative(x, f, "
      "b)\n"
      "m = Placeholder()\nw = Const()\np = _FusedMatMul(m, w, b)");
  graph->Find("x")->SetAttr("shape", AttrValue::OfShape({-1, 8, 8, 3}));
  graph->Find("f")->SetAttr("value", AttrValue::OfTensor(Floats({3, 3, 3, 4})));
  graph->Find("b")->SetAttr("value", AttrValue::OfTensor(Floats({4})));
  for (const char* name : {"c", "d"}) {
    graph->Find(name)->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
    graph->Find(name)->SetAttr("padding", AttrValue::String("SAME"));
  }
  graph->Find("m")->SetAttr("shape", AttrValue::OfShape({5, 7}));
  graph->Find("w")->SetAttr("value", AttrValue::OfTensor(Floats({7, 4})));
  for (const char* name : {"c", "d", "p"}) {
    Node* node = graph->Find(name);
    node->SetAttr("num_args", AttrValue::Int(1));
    node->SetAttr("fused_ops", AttrValue::StringList({"BiasAdd"}));
    if (node->op() == ops::k_FusedConv2D) node->SetAttr("TArgs", AttrValue::TypeList({DType::kFloat}));
  }
  const FlopsEstimate estimate = EstimateFlops(*graph);
  ASSERT_TRUE(estimate.status.ok()) << estimate.status;
  const uint64_t convolution = 4u * 4 * 4 * 3 * 3 * 3 * 2, depthwise = 4u * 4 * 12 * 3 * 3 * 2,
                 product = 5u * 4 * 7 * 2;
  EXPECT_EQ(estimate.num_unknown, 0u);
  EXPECT_EQ(estimate.total, convolution + depthwise + product);
}

TEST(Flops, SaysWhatItCouldNotCount) {
  const std::unique_ptr<Graph> graph =
      GraphFromText("x = Placeholder()\nw = Const()\ny = MatMul(x, w)\nz = MatMul(x, y)");
  graph->Find("x")->SetAttr("shape", AttrValue::OfShape({-1, -1}));
  graph->Find("w")->SetAttr("value", AttrValue::OfTensor(Floats({3, 2})));
  const FlopsEstimate estimate = EstimateFlops(*graph);
  ASSERT_TRUE(estimate.status.ok()) << estimate.status;
  EXPECT_EQ(estimate.total, 0u);
  EXPECT_EQ(estimate.num_unknown, 2u);
}

}  // namespace
}  // namespace permafrost

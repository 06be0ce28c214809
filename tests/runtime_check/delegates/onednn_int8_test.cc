// Compares the onednn delegate in eight bits, and with several precisions in one model, with the reference kernels.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/calibration.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

const Shape kImage = {2, 9, 7, 16};

class OneDnnInt8Test : public testing::Test {
 protected:
  void SetUp() override {
    PrecisionPlan plan;
    plan.precision = Precision::kInt8;
    const absl::Status status = MakeDelegate("onednn", {"int8", std::make_shared<PrecisionPlan>(plan)}).status();
    if (absl::IsUnimplemented(status)) GTEST_SKIP() << status;
  }

  // Returns the statistics of all tensors that the delegate computes.
  PrecisionPlan Calibrated(const Graph& graph, const std::vector<Tensor>& inputs,
                           const std::vector<std::string>& fetches) {
    PrecisionPlan plan;
    const auto session = MakeSession(*MakeDelegate("onednn", {}), graph, {"x"}, fetches, 1);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Plan({inputs[0].shape()}).ok());
    std::vector<std::vector<Tensor>> samples;
    for (const Tensor& input : inputs) samples.push_back({input});
    auto tensors =
        Calibrate(graph, {"x"}, samples, (*session)->report().delegation, RangeMethod::kMinMax, SessionOptions());
    EXPECT_TRUE(tensors.ok()) << tensors.status();
    plan.tensors = *std::move(tensors);
    return plan;
  }

  // Runs the graph in eight bits, calibrated with the fed input.
  PlanOutcome RunInt8(const ImageGraph& graph, const std::vector<std::string>& fetches, const Shape& image = kImage) {
    const Tensor input = SomeFloats(image, 5);
    PrecisionPlan plan = Calibrated(graph.graph(), {input}, fetches);
    plan.precision = Precision::kInt8;
    const PlanOutcome two = RunPlan(graph.graph(), plan, input, fetches, 2);
    PlanOutcome one = RunPlan(graph.graph(), plan, input, fetches, 1);
    EXPECT_NEAR(one.relative, two.relative, 1e-4);
    return one;
  }
};

// Integers are exact in eight bits, so the sums must be exact.
TEST_F(OneDnnInt8Test, IsExactOnWholeNumbers) {
  for (const bool is_signed : {false, true}) {
    for (const int64_t channels : {1, 3, 16, 33}) {
      for (const std::string kind : {"Conv2D", "DepthwiseConv2dNative"}) {
        SCOPED_TRACE(absl::StrCat(kind, " ", channels, is_signed ? " signed" : ""));
        const Shape image = {1, 8, 6, channels};
        const int64_t outputs = kind == "Conv2D" ? 19 : 1;
        ImageGraph graph(image);
        std::vector<float> weights, values;
        uint32_t state = 7;
        const auto next = [&](int least, int most) {
          state = state * 1664525u + 1013904223u;
          return static_cast<float>(least + static_cast<int>((state >> 8) % static_cast<uint32_t>(most - least + 1)));
        };
        const Shape filter = {3, 3, channels, outputs};
        for (int64_t i = 0; i < filter.num_elements(); ++i) weights.push_back(next(-127, 127));
        // The largest weight of each output channel, which determines the scale.
        const int64_t scaled = kind == "Conv2D" ? outputs : channels;
        for (int64_t o = 0; o < scaled; ++o) weights[static_cast<size_t>(o)] = 127;
        for (int64_t i = 0; i < image.num_elements(); ++i)
          values.push_back(next(is_signed ? -127 : 0, is_signed ? 127 : 255));
        values[0] = is_signed ? -127 : 255;
        values[1] = is_signed ? 127 : 255;
        graph.Window("conv", kind, "x", filter, 1, 1, "SAME");
        graph.mutable_graph().Find("conv/filter")->SetAttr("value", AttrValue::OfTensor(Floats(filter, weights)));
        const Tensor input = Floats(image, values);
        PrecisionPlan plan = Calibrated(graph.graph(), {input}, {"conv"});
        for (auto& [name, statistics] : plan.tensors) statistics.means.clear();
        plan.precision = Precision::kInt8;
        const PlanOutcome outcome = RunPlan(graph.graph(), plan, input, {"conv"});
        EXPECT_LT(outcome.relative, 1e-6);
      }
    }
  }
}

TEST_F(OneDnnInt8Test, StaysInEightBitsFromConvolutionToConvolution) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {3, 3, 16, 24});
  graph.Float("b", "Relu", {"a"});
  graph.Window("c", "DepthwiseConv2dNative", "b", {3, 3, 24, 1}, 1, 1, "SAME");
  graph.Float("d", "Relu6", {"c"});
  graph.Convolution("e", "d", {1, 1, 24, 8});
  const PlanOutcome outcome = RunInt8(graph, {"e"});
  EXPECT_LT(outcome.relative, 0.03);
  // Only the input is converted.
  EXPECT_EQ(outcome.pieces.size(), 4) << testing::PrintToString(outcome.pieces);
  EXPECT_THAT(outcome.pieces, Contains(HasSubstr("conversion of float to s8")));
  EXPECT_THAT(outcome.pieces, Not(Contains(HasSubstr("bf16"))));
}

// Any op that follows a depthwise convolution is fused with it, in every precision.
TEST_F(OneDnnInt8Test, DepthwiseConvolutionsOfOurOwn) {
  const std::string kTails[] = {"none", "relu", "prelu", "leaky", "prelu relu6", "hard swish", "residual", "sigmoid"};
  int variant = 0;
  for (const std::string& tail : kTails) {
    for (const int64_t channels : {6, 16, 40, 113}) {
      const int64_t taps = variant % 2 == 0 ? 3 : 5, stride = variant % 3 == 1 ? 2 : 1;
      const int64_t dilation = stride == 1 && variant % 3 == 2 ? 2 : 1;
      const std::string padding = variant % 5 == 0 ? "VALID" : "SAME";
      ++variant;
      SCOPED_TRACE(absl::StrCat(tail, ", ", channels, " channels, ", taps, " taps, stride ", stride, ", dilation ",
                                dilation, ", ", padding));
      const Shape image = {2, 11, 13, channels};
      ImageGraph graph(image);
      graph.Window("taken", "DepthwiseConv2dNative", "x", {1, 1, channels, 1}, 1, 1, "SAME");
      graph.Window("conv", "DepthwiseConv2dNative", "taken", {taps, taps, channels, 1}, stride, dilation, padding);
      std::string last = "conv";
      const auto then = [&](const std::string& name, const std::string& op, std::vector<std::string> inputs) {
        inputs.insert(inputs.begin(), last);
        last = name;
        return graph.Float(name, op, inputs);
      };
      if (tail == "relu") then("relu", "Relu", {});
      if (tail == "leaky") then("leaky", "LeakyRelu", {})->SetAttr("alpha", AttrValue::Float(0.125f));
      if (tail == "sigmoid") then("sigmoid", "Sigmoid", {});
      if (tail == "hard swish") {
        graph.Const("three", Floats({}, {3}));
        graph.Const("sixth", Floats({}, {1.0f / 6}));
        then("plus_three", "AddV2", {"three"});
        then("gate", "Relu6", {});
        then("product", "Mul", {"conv"});
        then("swish", "Mul", {"sixth"});
      }
      if (tail == "prelu" || tail == "prelu relu6") {
        // PRelu as written by exporters: relu(x) + slope * min(x, 0).
        graph.Weights("slope", {channels});
        graph.Const("zero", Floats({}, {0}));
        graph.Float("above", "Relu", {"conv"});
        graph.Float("below", "Minimum", {"conv", "zero"});
        graph.Float("sloped", "Mul", {"below", "slope"});
        graph.Float("prelu", "AddV2", {"above", "sloped"});
        last = "prelu";
      }
      if (tail == "prelu relu6") then("relu6", "Relu6", {});
      if (tail == "residual") {
        graph.Window("beside", "DepthwiseConv2dNative", "x", {taps, taps, channels, 1}, stride, dilation, padding);
        then("sum", "AddV2", {"beside"});
      }
      graph.Convolution("out", last, {1, 1, channels, 9});
      const Tensor input = SomeFloats(image, 5);
      const PrecisionPlan base = Calibrated(graph.graph(), {input}, {"out"});
      for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
        SCOPED_TRACE(static_cast<int>(precision));
        PrecisionPlan plan = base;
        plan.precision = precision;
        const PlanOutcome one = RunPlan(graph.graph(), plan, input, {"out"}, 1);
        const PlanOutcome two = RunPlan(graph.graph(), plan, input, {"out"}, 2);
        EXPECT_LT(one.relative, precision == Precision::kF32 ? 1e-5 : precision == Precision::kBf16 ? 0.01 : 0.03);
        EXPECT_EQ(one.relative, two.relative);
        // In float, oneDNN is faster for many channels and for lines that share no input lines.
        const bool is_shared = stride == 1 && dilation == 1;
        if (precision == Precision::kInt8 || (precision == Precision::kF32 && (is_shared || channels <= 48))) {
          EXPECT_THAT(one.pieces, Contains(HasSubstr("(lines of")));
        }
      }
    }
  }
}

// A value that is never negative needs no slopes for negative numbers.
TEST_F(OneDnnInt8Test, LeavesOutSlopesBehindARelu) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {3, 3, 16, 24});
  graph.Float("b", "Relu", {"a"});
  graph.Float("c", "LeakyRelu", {"b"})->SetAttr("alpha", AttrValue::Float(0.125f));
  graph.Weights("slope", {24});
  graph.Const("zero", Floats({}, {0}));
  graph.Float("above", "Relu", {"c"});
  graph.Float("below", "Minimum", {"c", "zero"});
  graph.Float("sloped", "Mul", {"below", "slope"});
  graph.Float("prelu", "AddV2", {"above", "sloped"});
  graph.Convolution("out", "prelu", {1, 1, 24, 8});
  const Tensor input = SomeFloats(kImage, 5);
  const PlanOutcome outcome = RunPlan(graph.graph(), PrecisionPlan(), input, {"out"});
  EXPECT_LT(outcome.relative, 1e-5);
  EXPECT_EQ(outcome.pieces.size(), 2) << testing::PrintToString(outcome.pieces);
}

TEST_F(OneDnnInt8Test, PoolsAndJoinsWithoutConversions) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {3, 3, 16, 24});
  graph.Float("a_relu", "Relu", {"a"});
  graph.Convolution("b", "x", {1, 1, 16, 8});
  graph.Float("b_relu", "Relu", {"b"});
  graph.Ints("axis", {3});
  Node* concat = graph.Float("joined", "ConcatV2", {"a_relu", "b_relu", "axis"});
  concat->SetAttr("N", AttrValue::Int(2));
  concat->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
  for (const std::string kind : {"MaxPool", "AvgPool"}) {
    Node* pool = graph.Float(kind, kind, {"joined"});
    pool->SetAttr("ksize", AttrValue::IntList({1, 3, 3, 1}));
    pool->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
    pool->SetAttr("padding", AttrValue::String("SAME"));
    graph.Convolution(kind + "_out", kind, {1, 1, 32, 8});
  }
  const PlanOutcome outcome = RunInt8(graph, {"MaxPool_out", "AvgPool_out"});
  EXPECT_LT(outcome.relative, 0.03);
  int conversions = 0;
  for (const std::string& piece : outcome.pieces) conversions += piece.find("conversion") != std::string::npos ? 1 : 0;
  EXPECT_EQ(conversions, 1) << testing::PrintToString(outcome.pieces);
}

TEST_F(OneDnnInt8Test, KeepsResidualsInMoreBits) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {1, 1, 16, 16});
  graph.Convolution("b", "a", {3, 3, 16, 16});
  graph.Float("b_relu", "Relu", {"b"});
  graph.Convolution("c", "b_relu", {1, 1, 16, 16});
  graph.Float("sum", "AddV2", {"c", "a"});
  graph.Convolution("out", "sum", {1, 1, 16, 16});
  EXPECT_LT(RunInt8(graph, {"out"}).relative, 0.03);
}

TEST_F(OneDnnInt8Test, ScalesBehindEveryActivation) {
  for (const std::string activation :
       {"Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "LeakyRelu", "Neg", "Abs", "Square"}) {
    SCOPED_TRACE(activation);
    ImageGraph graph(kImage);
    graph.Convolution("a", "x", {3, 3, 16, 24});
    graph.Weights("scale", {24});
    graph.Float("scaled", "Mul", {"a", "scale"});
    graph.Weights("bias", {24});
    graph.Float("shifted", "AddV2", {"scaled", "bias"});
    Node* node = graph.Float("b", activation, {"shifted"});
    if (activation == "LeakyRelu") node->SetAttr("alpha", AttrValue::Float(0.25f));
    graph.Convolution("out", "b", {1, 1, 24, 8});
    EXPECT_LT(RunInt8(graph, {"out"}).relative, 0.03);
  }
}

TEST_F(OneDnnInt8Test, MultipliesMatrices) {
  ImageGraph graph({3, 40});
  graph.Weights("w", {40, 30});
  graph.Float("a", "MatMul", {"x", "w"});
  graph.Float("b", "Relu", {"a"});
  graph.Weights("v", {10, 30});
  graph.Float("out", "MatMul", {"b", "v"})->SetAttr("transpose_b", AttrValue::Bool(true));
  EXPECT_LT(RunInt8(graph, {"out"}, {3, 40}).relative, 0.03);
}

TEST_F(OneDnnInt8Test, ComputesWhatIsNotFiniteInFloats) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {3, 3, 16, 24});
  graph.Float("b", "Relu", {"a"});
  graph.Convolution("out", "b", {1, 1, 24, 8});
  const Tensor good = SomeFloats(kImage, 5);
  PrecisionPlan plan = Calibrated(graph.graph(), {good}, {"out"});
  plan.precision = Precision::kInt8;
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values = ToVector(good);
    values[17] = odd;
    const Tensor input = Floats(kImage, values);
    const PlanOutcome outcome = RunPlan(graph.graph(), plan, input, {"out"});
    const auto reference = MakeSession(nullptr, graph.graph(), {"x"}, {"out"}, 1);
    const std::vector<float> expected = ToVector((*(*reference)->Run({input}))[0]);
    const std::vector<float> actual = ToVector(outcome.outputs[0]);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << i;
  }
}

TEST_F(OneDnnInt8Test, TakesConstantAndZeroActivations) {
  for (const float value : {0.0f, 3.0f, -3.0f, 1e-30f}) {
    SCOPED_TRACE(value);
    ImageGraph graph(kImage);
    graph.Convolution("a", "x", {3, 3, 16, 24});
    graph.Float("b", "Relu", {"a"});
    graph.Convolution("out", "b", {1, 1, 24, 8});
    const Tensor input = Floats(kImage, std::vector<float>(static_cast<size_t>(kImage.num_elements()), value));
    PrecisionPlan plan = Calibrated(graph.graph(), {input}, {"out"});
    plan.precision = Precision::kInt8;
    EXPECT_LT(RunPlan(graph.graph(), plan, input, {"out"}).relative, value == 1e-30f ? 2 : 0.03);
  }
}

TEST_F(OneDnnInt8Test, LeavesInMoreBitsWhatNobodyCalibrated) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {3, 3, 16, 24});
  graph.Float("b", "Relu", {"a"});
  graph.Convolution("out", "b", {1, 1, 24, 8});
  PrecisionPlan plan;
  plan.precision = Precision::kInt8;
  const PlanOutcome outcome = RunPlan(graph.graph(), plan, SomeFloats(kImage, 5), {"out"});
  EXPECT_THAT(outcome.pieces, Not(Contains(HasSubstr("s8"))));
  EXPECT_LT(outcome.relative, 0.01);
}

TEST_F(OneDnnInt8Test, MixesPrecisionsByNode) {
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {3, 3, 16, 24});
  graph.Float("a_relu", "Relu", {"a"});
  graph.Convolution("b", "a_relu", {3, 3, 24, 24});
  graph.Float("b_relu", "Relu", {"b"});
  graph.Convolution("c", "b_relu", {1, 1, 24, 24});
  graph.Float("sum", "AddV2", {"c", "a_relu"});
  graph.Convolution("out", "sum", {1, 1, 24, 8});
  const Tensor input = SomeFloats(kImage, 5);
  const PrecisionPlan base = Calibrated(graph.graph(), {input}, {"out"});
  // Every assignment of three precisions to the four convolutions.
  const Precision all[] = {Precision::kF32, Precision::kBf16, Precision::kInt8};
  for (int code = 0; code < 81; ++code) {
    SCOPED_TRACE(code);
    PrecisionPlan plan = base;
    const std::vector<std::string> nodes[] = {{"a", "a_relu"}, {"b", "b_relu"}, {"c", "sum"}, {"out"}};
    int rest = code;
    bool is_full = true;
    for (const std::vector<std::string>& section : nodes) {
      for (const std::string& node : section) plan.nodes[node] = all[rest % 3];
      is_full = is_full && rest % 3 == 0;
      rest /= 3;
    }
    const PlanOutcome outcome = RunPlan(graph.graph(), plan, input, {"out"});
    EXPECT_LT(outcome.relative, is_full ? 1e-5 : 0.03);
  }
}

TEST_F(OneDnnInt8Test, PutsTheBiasRightOnAverage) {
  // All weights round in the same direction, and the input has a nonzero mean: the error is almost constant.
  const Shape image = {1, 16, 16, 64};
  ImageGraph graph(image);
  graph.Convolution("out", "x", {1, 1, 64, 16});
  graph.mutable_graph()
      .Find("out/filter")
      ->SetAttr("value", AttrValue::OfTensor(Floats({1, 1, 64, 16}, std::vector<float>(1024, 1.00390f))));
  std::vector<float> values = ToVector(SomeFloats(image, 3));
  for (float& value : values) value = 1 + value / 8;
  const Tensor input = Floats(image, values);
  PrecisionPlan plan = Calibrated(graph.graph(), {input}, {"out"});
  plan.precision = Precision::kBf16;
  PrecisionPlan plain;
  plain.precision = Precision::kBf16;
  const double with = RunPlan(graph.graph(), plan, input, {"out"}).relative;
  const double without = RunPlan(graph.graph(), plain, input, {"out"}).relative;
  EXPECT_GT(without, 3e-3);
  EXPECT_LT(with, without / 5);
}

}  // namespace
}  // namespace permafrost

// Compares the xnnpack delegate with the reference kernels on small graphs.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/ops/op_schema.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<const Delegate> Xnnpack() {
  static const auto delegate = MakeXnnpackDelegate();
  EXPECT_TRUE(delegate.ok()) << delegate.status();
  return *delegate;
}

TEST(XnnpackTest, FusesConvolutionBiasAndClamp) {
  ImageGraph graph({1, 9, 7, 3});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 1, 2, 3, 0, 0, 0}));
  graph.Float("pad", "Pad", {"x", "paddings"});
  graph.Window("conv", "Conv2D", "pad", {3, 3, 3, 5}, 2, 1, "VALID");
  graph.Weights("b", {5});
  graph.Float("bias", "BiasAdd", {"conv", "b"});
  graph.Float("relu", "Relu6", {"bias"});
  graph.Const("two", Tensor::Scalar<float>(2));
  graph.Float("bounded", "Minimum", {"two", "relu"});
  const DelegationReport report =
      ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 9, 7, 3}, 1)}}, {"bounded"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_EQ(report.partitions[0].delegate, "xnnpack");
  EXPECT_THAT(report.partitions[0].nodes, ElementsAre("pad", "conv", "bias", "relu", "bounded"));
  EXPECT_THAT(report.partitions[0].pieces, ElementsAre("bounded: convolution 3x3 + bias + clamp"));
  EXPECT_GE(report.partitions[0].constant_bytes, 3 * 3 * 3 * 5 * 4);
}

// Half of the products are half of the distance between floats near the bias: a sum that starts with the bias loses all
// of them. The other half is zero, and belongs to weights that are large in comparison.
TEST(XnnpackTest, AddsLargeBiasOfImagesLast) {
  constexpr int64_t kTaps = 5 * 5, kIn = 4, kOut = 8;
  constexpr float kBias = 1024, kProduct = 1.0f / 16384, kUnused = 256;
  ImageGraph graph({1, 16, 16, kIn});
  std::vector<float> filter, image;
  for (int64_t i = 0; i < kTaps * kIn; ++i) filter.insert(filter.end(), kOut, i % kIn < 2 ? kProduct : kUnused);
  for (int64_t i = 0; i < 16 * 16 * kIn; ++i) image.push_back(i % kIn < 2 ? 1.0f : 0.0f);
  graph.Const("filter", Tensor::FromVector<float>({5, 5, kIn, kOut}, filter));
  Node* conv = graph.Float("conv", "Conv2D", {"x", "filter"});
  conv->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
  conv->SetAttr("padding", AttrValue::String("VALID"));
  graph.Const("b", Tensor::FromVector<float>({kOut}, std::vector<float>(kOut, kBias)));
  graph.Float("bias", "BiasAdd", {"conv", "b"});
  graph.Float("relu", "Relu", {"bias"});
  const auto session = MakeSession(Xnnpack(), graph.graph(), {"x"}, {"relu"}, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = (*session)->Run({Tensor::FromVector<float>({1, 16, 16, kIn}, image)});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const UnalignedSpan<float> found = (*outputs)[0].elements<float>();
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], kBias + 2 * kTaps * kProduct) << i;
  const DelegationReport& report = (*session)->report().delegation;
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces, ElementsAre("conv: convolution 5x5", "relu: bias + clamp"));
}

TEST(XnnpackTest, AddsLargeBiasInPlace) {
  ImageGraph graph({2, 9, 7, 3});
  graph.Convolution("conv", "x", {1, 1, 3, 5});
  graph.Weights("b", {5});
  graph.Float("bias", "BiasAdd", {"conv", "b"});
  graph.Float("relu", "Relu6", {"bias"});
  graph.Convolution("next", "relu", {3, 3, 5, 4});
  const DelegationReport report =
      ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 9, 7, 3}, 1)}}, {"next", "relu"}, 2);
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces,
              ElementsAre("conv: convolution 1x1", "relu: bias + clamp", HasSubstr("next")));
}

TEST(XnnpackTest, TakesMaxPoolingBehindInfinitePads) {
  ImageGraph graph({1, 9, 7, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 4});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}));
  graph.Const("lowest", Tensor::Scalar<float>(-std::numeric_limits<float>::infinity()));
  graph.Float("pad", "PadV2", {"conv", "paddings", "lowest"});
  Node* pool = graph.Float("pool", "MaxPool", {"pad"});
  pool->SetAttr("ksize", AttrValue::IntList({1, 3, 3, 1}));
  pool->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
  pool->SetAttr("padding", AttrValue::String("VALID"));
  graph.Float("relu", "Relu", {"pool"});
  const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 9, 7, 3}, 1)}}, {"relu"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].nodes, ElementsAre("conv", "pad", "pool", "relu"));
  EXPECT_THAT(report.partitions[0].pieces, ElementsAre(HasSubstr("conv"), HasSubstr("clamp")));
}

TEST(XnnpackTest, KeepsWhatOthersRead) {
  ImageGraph graph({1, 5, 5, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 4});
  graph.Weights("b", {4});
  graph.Float("bias", "AddV2", {"b", "conv"});
  graph.Float("relu", "Relu", {"bias"});
  graph.Float("again", "Add", {"relu", "conv"});
  const DelegationReport report =
      ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 5, 5, 3}, 1)}}, {"conv", "bias", "relu", "again"}, 2);
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces,
              ElementsAre("conv: convolution 3x3", "bias: add", "relu: clamp", "again: add"));
}

TEST(XnnpackTest, ClampsMeet) {
  ImageGraph graph({2, 3});
  graph.Const("one", Tensor::Scalar<float>(1));
  graph.Const("minus", Tensor::FromVector<float>({1}, {-1}));
  graph.Float("low", "Maximum", {"x", "minus"});
  graph.Float("high", "Minimum", {"low", "one"});
  graph.Float("relu", "Relu", {"high"});
  DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3}, 1)}}, {"relu"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces, ElementsAre("relu: clamp"));
  // Bounds that allow only one value cannot become one clamp.
  graph.Float("nothing", "Minimum", {"relu", "minus"});
  graph.Float("end", "Maximum", {"nothing", "one"});
  report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3}, 1)}}, {"end"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces, SizeIs(3));
}

TEST(XnnpackTest, SaysThatItCannotTakeNaN) {
  ImageGraph graph({1, 2, 2, 3});
  graph.Convolution("conv", "x", {1, 1, 3, 4});
  graph.Float("abs", "Abs", {"x"});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Tensor input = Floats({1, 2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, bad});
    const auto session = MakeSession(AlwaysWorthwhile(Xnnpack()), graph.graph(), {"x"}, {"conv"}, 1);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({input});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT((*session)->report().delegation.failure, AllOf(HasSubstr("'conv'"), HasSubstr("NaN or infinity")));
    EXPECT_TRUE((*session)->Run({SomeFloats({1, 2, 2, 3}, 1)}).ok());
    // Without an op that loses NaN, nothing is reported.
    const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", input}}, {"abs"});
    EXPECT_THAT(report.partitions, SizeIs(1));
  }
}

TEST(XnnpackTest, PRelusAsExportersWriteThem) {
  for (const bool subtracts : {false, true}) {
    for (const bool is_read : {false, true}) {
      ImageGraph graph({2, 3, 3, 5});
      graph.Weights("alpha", {5});
      graph.Const("half", Tensor::Scalar<float>(0.5f));
      graph.Convolution("conv", "x", {1, 1, 5, 5});
      graph.Float("relu", "Relu", {"conv"});
      if (subtracts) {
        graph.Float("abs", "Abs", {"conv"});
        graph.Float("difference", "Sub", {"conv", "abs"});
        graph.Float("product", "Mul", {"alpha", "difference"});
        graph.Float("scaled", "Mul", {"product", "half"});
      } else {
        graph.Float("neg", "Neg", {"conv"});
        graph.Float("other", "Relu", {"neg"});
        graph.Float("scaled", "Mul", {"alpha", "other"});
      }
      graph.Float("sum", "AddV2", {"relu", "scaled"});
      std::vector<std::string> fetches = {"sum"};
      if (is_read) fetches.push_back("scaled");
      const DelegationReport report =
          ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3, 3, 5}, 8)}}, fetches, 2);
      ASSERT_THAT(report.partitions, SizeIs(1));
      if (is_read) {
        EXPECT_GT(report.partitions[0].pieces.size(), 2);
      } else {
        EXPECT_THAT(report.partitions[0].pieces, ElementsAre("conv: convolution 1x1", "sum: prelu"));
      }
    }
  }
}

TEST(XnnpackTest, LeavesTensorsWithoutElements) {
  ImageGraph graph(Shape({kUnknownDim, 8, 8, 3}));
  graph.Convolution("conv", "x", {3, 3, 3, 8});
  const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({0, 8, 8, 3}, 5)}}, {"conv"});
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(1));
  EXPECT_EQ(report.left[0].reason, "it has a tensor without elements");
}

TEST(XnnpackTest, LeavesSmallThingsAlone) {
  ImageGraph graph({1, 4, 4, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 4});
  const auto session = MakeSession(Xnnpack(), graph.graph(), {"x"}, {"conv"}, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run({SomeFloats({1, 4, 4, 3}, 1)}).ok());
  const DelegationReport& report = (*session)->report().delegation;
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(1));
  EXPECT_THAT(report.left[0].reason, HasSubstr("too small"));
}

TEST(XnnpackTest, ReportsPieces) {
  ImageGraph graph({1, 32, 32, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 16});
  graph.Float("sigmoid", "Sigmoid", {"conv"});
  std::map<std::string, int> pieces;
  SessionOptions options;
  options.delegate = Xnnpack();
  options.on_piece = [&](absl::string_view name, absl::Duration) { ++pieces[std::string(name)]; };
  const auto session = Session::Create(graph.graph(), {"x"}, {"sigmoid"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run({SomeFloats({1, 32, 32, 3}, 1)}).ok());
  EXPECT_EQ(pieces, (std::map<std::string, int>{{"conv", 1}, {"sigmoid", 1}}));
  const DelegationReport& report = (*session)->report().delegation;
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_GE(report.partitions[0].scratch_bytes, 32 * 32 * 16 * 4);
}

}  // namespace
}  // namespace permafrost

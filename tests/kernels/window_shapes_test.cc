// The image kernels on shapes and attributes that would lead outside the image, exceed memory or overflow: none of them
// may be trusted, since they come from a file.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "runtime_check/evaluate.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 40;

class WindowShapesTest : public testing::Test {
 protected:
  using Attrs = std::vector<std::pair<std::string, AttrValue>>;

  absl::StatusOr<std::vector<Tensor>> Run(absl::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
    Graph graph;
    Node* node = *graph.AddNode("n", Op::Named(op));
    for (size_t i = 0; i < inputs.size(); ++i) {
      graph.AddInput(node, {*graph.AddConst(absl::StrCat("c", i), inputs[i]), 0});
    }
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
    for (const auto& [key, value] : attrs) node->SetAttr(key, value);
    return KernelEvaluator().Evaluate(*node, inputs);
  }
  std::string Error(absl::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
    return std::string(Run(op, inputs, attrs).status().message());
  }
};

Tensor Floats(const Shape& shape) {
  return Tensor::FromVector(shape, std::vector<float>(static_cast<size_t>(shape.num_elements()), 1));
}
Tensor Ints(std::vector<int32_t> values) {
  const Shape shape({static_cast<int64_t>(values.size())});
  return Tensor::FromVector(shape, std::move(values));
}
AttrValue Format(absl::string_view name) { return AttrValue::String(name); }
AttrValue Four(int64_t a, int64_t b, int64_t c, int64_t d) { return AttrValue::IntList({a, b, c, d}); }

TEST_F(WindowShapesTest, AFilterForChannelsThatTheInputLacks) {
  EXPECT_THAT(Error("Conv2D", {Floats({1, 4, 4, 0}), Floats({1, 1, 1, 8})},
                    {{"strides", Four(1, 1, 1, 1)}, {"padding", Format("SAME")}}),
              HasSubstr("the input has 0 channels, expected a positive multiple of the filter's 1"));
}

TEST_F(WindowShapesTest, APoolingHasNoDilations) {
  const auto attrs = [](int64_t dilation) {
    return Attrs{{"ksize", Four(1, 3, 3, 1)},
                 {"strides", Four(1, 1, 1, 1)},
                 {"padding", Format("SAME")},
                 {"dilations", Four(1, dilation, dilation, 1)}};
  };
  for (const char* op : {"MaxPool", "AvgPool"}) {
    EXPECT_EQ(Error(op, {Floats({1, 4, 4, 2})}, attrs(1)), "") << op;
    EXPECT_THAT(Error(op, {Floats({1, 4, 4, 2})}, attrs(2)), HasSubstr("attr 'dilations' is not 1")) << op;
  }
}

TEST_F(WindowShapesTest, MoreLinesThanFloatCounts) {
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"}) {
    EXPECT_THAT(Error(op, {Floats({1, 1, 1, 1}), Ints({2147483647, 1})}, {}), HasSubstr("cannot resize")) << op;
  }
}

// Without channels or images there is nothing to compute, and the products of the other dimensions may exceed int64.
TEST_F(WindowShapesTest, NothingOfHugeSize) {
  const Shape no_channels({kHuge, 0, kHuge, 3}), no_images({0, kHuge, kHuge, 3});
  const Attrs window = {{"ksize", Four(1, 1, 1, 1)},
                        {"strides", Four(1, 1, 1, 1)},
                        {"padding", Format("VALID")},
                        {"data_format", Format("NCHW")}};
  EXPECT_EQ(Error("MaxPool", {Floats(no_channels)}, window), "");
  EXPECT_EQ(Error("DepthwiseConv2dNative", {Floats(no_channels), Floats({1, 1, 0, 2})}, window), "");
  EXPECT_EQ(Error("Conv2D", {Floats({0, 1, kHuge, kHuge}), Floats({1, 1, 1, 0})}, window), "");
  EXPECT_EQ(Error("BiasAdd", {Floats({0, kHuge, kHuge, 3}), Floats({3})}, {}), "");
  EXPECT_EQ(Error("BiasAdd", {Floats(no_channels), Floats({0})}, {{"data_format", Format("NCHW")}}), "");
  const Tensor three = Floats({3});
  EXPECT_EQ(Error("FusedBatchNorm", {Floats(no_images), three, three, three, three},
                  {{"is_training", AttrValue::Bool(false)}}),
            "");
  const std::vector<int32_t> margins = {1 << 30, (1 << 30) - 1, 1 << 30, (1 << 30) - 1};
  const Tensor paddings = Tensor::FromVector<int32_t>({2, 2}, margins);
  EXPECT_EQ(Error("SpaceToBatchND", {Floats({0, kHuge + 1, kHuge + 1, 1}), Ints({2, 2}), paddings}, {}), "");
}

}  // namespace
}  // namespace permafrost

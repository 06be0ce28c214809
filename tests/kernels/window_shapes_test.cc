// Tests the image kernels on shapes and attributes that would lead outside the image, exhaust memory or overflow. They
// come from a file and are never trusted.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/evaluate.h"

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

// Without channels or images there is nothing to compute, and the product of the other dimensions may exceed int64.
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

TEST_F(WindowShapesTest, FusedOpsThatDoNotFit) {
  const auto attrs = [](std::vector<std::string> fused_ops, int64_t args) {
    return Attrs{{"strides", Four(1, 1, 1, 1)},
                 {"padding", Format("SAME")},
                 {"fused_ops", AttrValue::StringList(fused_ops)},
                 {"num_args", AttrValue::Int(args)},
                 {"TArgs", AttrValue::TypeList(std::vector<DType>(args, DType::kFloat))}};
  };
  const Tensor image = Floats({1, 2, 2, 3}), filter = Floats({1, 1, 3, 4});
  EXPECT_THAT(Error("_FusedConv2D", {image, filter, Floats({4})}, attrs({"Add"}, 1)),
              HasSubstr("attr 'fused_ops' is 'Add', expected BiasAdd or FusedBatchNorm"));
  EXPECT_THAT(Error("_FusedConv2D", {image, filter, Floats({4})}, attrs({"BiasAdd", "Selu"}, 1)),
              HasSubstr("attr 'fused_ops' is 'BiasAdd,Selu'"));
  EXPECT_THAT(Error("_FusedConv2D", {image, filter, Floats({4})}, attrs({}, 1)), HasSubstr("attr 'fused_ops' is ''"));
  EXPECT_THAT(Error("_FusedConv2D", {image, filter, Floats({3})}, attrs({"BiasAdd"}, 1)),
              HasSubstr("input 2 has 3 elements, expected one for each of 4 channels"));
  EXPECT_THAT(Error("_FusedConv2D", {image, filter, Floats({1, 4})}, attrs({"BiasAdd"}, 1)),
              HasSubstr("expected a rank of 1"));
  EXPECT_THAT(Error("_FusedConv2D", {image, filter, Floats({4})}, attrs({"FusedBatchNorm"}, 1)),
              HasSubstr("it has 3 inputs, expected 6 with FusedBatchNorm"));
  EXPECT_THAT(Error("_FusedDepthwiseConv2dNative", {image, filter, Floats({3})}, attrs({"BiasAdd"}, 1)),
              HasSubstr("input 2 has 3 elements, expected one for each of 12 channels"));
  EXPECT_THAT(Error("_FusedMatMul", {Floats({2, 3}), Floats({3, 4}), Floats({2})}, attrs({"BiasAdd"}, 1)),
              HasSubstr("input 2 has 2 elements, expected one for each of 4 channels"));
}

TEST_F(WindowShapesTest, MirrorImagesThatDoNotFit) {
  const Attrs attrs = {{"strides", Four(1, 1, 1, 1)}, {"padding", Format("VALID")}, {"mode", Format("REFLECT")}};
  const auto paddings = [](std::vector<int32_t> values) {
    return Tensor::FromVector(Shape({4, 2}), std::move(values));
  };
  const Tensor image = Floats({1, 2, 3, 1}), filter = Floats({1, 1, 1, 1});
  EXPECT_THAT(Error("FusedPadConv2D", {image, paddings({0, 0, 2, 0, 0, 0, 0, 0}), filter}, attrs),
              HasSubstr("'paddings' is 2 and 0 for dimension 1 of 2, expected 0 to 1"));
  EXPECT_THAT(Error("FusedPadConv2D", {image, paddings({0, 0, 0, 0, 0, 0, 0, 1}), filter}, attrs),
              HasSubstr("for dimension 3 of 1, expected 0 to 0"));
  EXPECT_THAT(Error("FusedPadConv2D", {image, paddings({0, 0, 0, -1, 0, 0, 0, 0}), filter}, attrs),
              HasSubstr("'paddings' is 0 and -1"));
  EXPECT_THAT(Error("FusedPadConv2D", {image, Ints({0, 0, 0, 0, 0, 0, 0, 0}), filter}, attrs),
              HasSubstr("expected [4,2]"));
  const Tensor none = paddings({0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_THAT(Error("FusedPadConv2D", {Floats({1, 0, 3, 1}), none, filter}, attrs), HasSubstr("0 lines or columns"));
  EXPECT_THAT(Error("FusedResizeAndPadConv2D", {image, Ints({0, 4}), none, filter}, attrs),
              HasSubstr("an image of 0 lines or columns"));
  EXPECT_THAT(Error("FusedResizeAndPadConv2D", {image, Ints({2147483647, 4}), none, filter}, attrs),
              HasSubstr("an image of 2147483647 lines or columns"));
  EXPECT_THAT(Error("FusedResizeAndPadConv2D", {image, Ints({4}), none, filter}, attrs),
              HasSubstr("input 1 (size) has 1 values, expected 2"));
}

}  // namespace
}  // namespace permafrost

// Tests that invalid files and invalid values during a run cause an error status with its reason in the quantised
// kernels.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/evaluate.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Codes(DType dtype, const Shape& shape) {
  char* data = nullptr;
  Tensor tensor = *Tensor::Allocate(dtype, shape, &data);
  std::fill_n(data, tensor.bytes().size(), 1);
  return tensor;
}
Tensor Bytes(const Shape& shape) { return Codes(DType::kQUint8, shape); }
Tensor Sums(const Shape& shape) { return Codes(DType::kQInt32, shape); }
Tensor F(float x) { return Tensor::Scalar(x); }

using Types = std::vector<std::pair<const char*, DType>>;

class QuantizedInputTest : public testing::Test {
 protected:
  // Returns the error of a node of this op with these inputs and type attributes; set_attrs adds other attributes.
  template <typename SetAttrs>
  std::string Run(absl::string_view op, const Types& types, const std::vector<Tensor>& inputs, SetAttrs set_attrs) {
    Graph graph;
    Node* node = *graph.AddNode("n", Op::Named(op));
    for (size_t i = 0; i < inputs.size(); ++i) {
      graph.AddInput(node, {*graph.AddConst(absl::StrCat("c", i), inputs[i]), 0});
    }
    for (const auto& [name, dtype] : types) node->SetAttr(name, AttrValue::Type(dtype));
    set_attrs(node);
    return std::string(KernelEvaluator().Evaluate(*node, inputs).status().message());
  }
  std::string Run(absl::string_view op, const Types& types, const std::vector<Tensor>& inputs) {
    return Run(op, types, inputs, [](Node*) {});
  }
};

const Types kBinary = {{"T1", DType::kQUint8}, {"T2", DType::kQUint8}, {"Toutput", DType::kQInt32}};
const Types kConvolution = {{"Tinput", DType::kQUint8}, {"Tfilter", DType::kQUint8}, {"out_type", DType::kQInt32}};
const Types kRequantize = {{"Tinput", DType::kQInt32}, {"out_type", DType::kQUint8}};

TEST_F(QuantizedInputTest, RangesThatAreNone) {
  for (const char* op : {"QuantizedAdd", "QuantizedMul"}) {
    EXPECT_THAT(Run(op, kBinary, {Bytes({2}), Bytes({2}), F(1), F(1), F(0), F(1)}),
                HasSubstr("'max_x' must be larger than 'min_x', but the range is from 1 to 1"));
    EXPECT_THAT(Run(op, kBinary, {Bytes({2}), Bytes({2}), F(0), F(1), F(0), F(kNan)}),
                HasSubstr("'max_y' must be larger than 'min_y'"));
  }
  EXPECT_THAT(Run("QuantizedMatMul", kBinary, {Bytes({2, 2}), Bytes({2, 2}), F(2), F(1), F(0), F(1)}),
              HasSubstr("'max_a' must be larger than 'min_a'"));
  EXPECT_THAT(Run("QuantizeV2", {{"T", DType::kQUint8}}, {F(1), F(2), F(1)}),
              HasSubstr("'max_range' must not be below 'min_range', but the range is from 2 to 1"));
  EXPECT_THAT(Run("QuantizeV2", {{"T", DType::kQUint8}}, {F(1), F(0), F(kNan)}), HasSubstr("from 0 to nan"));
  EXPECT_THAT(Run("Requantize", kRequantize, {Sums({2}), F(-1), F(1), F(0.5), F(1)}),
              HasSubstr("'requested_output_min' must be <= 0, but is 0.5"));
  EXPECT_THAT(Run("Requantize", kRequantize, {Sums({2}), F(-1), F(1), F(0), F(-1)}),
              HasSubstr("'requested_output_max' must be >= 'requested_output_min'"));
  EXPECT_THAT(Run("Requantize", kRequantize, {Sums({2}), F(-1), F(1), F(0), F(kNan)}), HasSubstr("is nan"));
  EXPECT_THAT(Run("QuantizeAndDequantizeV2", {{"T", DType::kFloat}}, {F(1), F(2), F(1)},
                  [](Node* node) { node->SetAttr("range_given", AttrValue::Bool(true)); }),
              HasSubstr("'input_max' must not be below 'input_min'"));
}

// Numbers beyond the range of integers are clamped to the last code.
TEST_F(QuantizedInputTest, RangesOfAnySize) {
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float low : {-most, -1.f, -least, 0.f, kNan, -infinity}) {
    for (const float high : {most, 1.f, least, 0.f, kNan, infinity}) {
      EXPECT_EQ(Run("RequantizationRange", {{"Tinput", DType::kQInt32}}, {Sums({2}), F(low), F(high)}), "");
      EXPECT_EQ(Run("QuantizeDownAndShrinkRange", kRequantize, {Sums({2}), F(low), F(high)}), "");
      EXPECT_EQ(Run("QuantizedRelu6", {{"Tinput", DType::kQUint8}, {"out_type", DType::kQUint8}},
                    {Bytes({2}), F(low), F(high)}),
                "");
      EXPECT_EQ(Run("QuantizedBiasAdd", {{"T1", DType::kQInt8}, {"T2", DType::kQInt8}, {"out_type", DType::kQInt32}},
                    {Codes(DType::kQInt8, {2, 2}), Codes(DType::kQInt8, {2}), F(low), F(high), F(low), F(high)}),
                "");
      EXPECT_EQ(Run("Dequantize", {{"T", DType::kQInt16}}, {Codes(DType::kQInt16, {2}), F(low), F(high)}), "");
    }
  }
}

TEST_F(QuantizedInputTest, ShapesThatDoNotFit) {
  const Tensor two = Tensor::FromVector<float>(Shape({2}), {0, 1});
  EXPECT_THAT(Run("QuantizedAdd", kBinary, {Bytes({2}), Bytes({3}), F(0), F(1), F(0), F(1)}),
              HasSubstr("cannot be broadcast"));
  EXPECT_THAT(Run("QuantizedAdd", kBinary, {Bytes({2}), Bytes({2}), two, F(1), F(0), F(1)}),
              HasSubstr("input 2 is the end of a range and has the shape [2], expected a scalar"));
  EXPECT_THAT(Run("QuantizedMatMul", kBinary, {Bytes({2, 3}), Bytes({2, 3}), F(0), F(1), F(0), F(1)}),
              HasSubstr("the left matrix has 3 columns, the right 2 rows"));
  EXPECT_THAT(Run("QuantizedBiasAdd", {{"T1", DType::kQUint8}, {"T2", DType::kQUint8}, {"out_type", DType::kQInt32}},
                  {Bytes({2, 3}), Bytes({2}), F(0), F(1), F(0), F(1)}),
              HasSubstr("input 0 has 3 channels, the bias 2"));
  EXPECT_THAT(Run("QuantizedConcat", {{"T", DType::kQUint8}},
                  {Tensor::Scalar<int32_t>(0), Bytes({2, 3}), Bytes({2, 2}), F(0), F(0), F(1), F(1)},
                  [](Node* node) { node->SetAttr("N", AttrValue::Int(2)); }),
              HasSubstr("save for dimension 0"));
}

TEST_F(QuantizedInputTest, ConvolutionsThatAreNone) {
  const auto attrs = [](int64_t stride, int64_t dilation) {
    return [=](Node* node) {
      node->SetAttr("strides", AttrValue::IntList({1, stride, stride, 1}));
      node->SetAttr("dilations", AttrValue::IntList({1, dilation, dilation, 1}));
      node->SetAttr("padding", AttrValue::String("SAME"));
    };
  };
  const auto run = [&](const Shape& image, const Shape& filter, float low, float high, int64_t stride,
                       int64_t dilation) {
    return Run("QuantizedConv2D", kConvolution, {Bytes(image), Bytes(filter), F(low), F(high), F(-1), F(1)},
               attrs(stride, dilation));
  };
  EXPECT_EQ(run({1, 3, 3, 2}, {2, 2, 2, 1}, -1, 1, 1, 1), "");
  EXPECT_THAT(run({1, 3, 3, 2}, {2, 2, 3, 1}, -1, 1, 1, 1), HasSubstr("the input has 2 channels, the filter 3"));
  EXPECT_THAT(run({1, 3, 3, 2}, {2, 2, 2, 1}, -1, 1, 0, 1), HasSubstr("attr 'strides' has the value 0"));
  EXPECT_THAT(run({1, 3, 3, 2}, {2, 2, 2, 1}, -1, 1, 1, 2), HasSubstr("attr 'dilations' is not 1"));
  EXPECT_THAT(run({1, 3, 3, 2}, {2, 2, 2, 1}, 1000, 1001, 1, 1), HasSubstr("more than 128 times its width from 0"));
  EXPECT_EQ(run({1, 3, 3, 2}, {1, 1, 2, 1}, 1000, 1001, 1, 1), "");
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(run({huge, 3, 3, 0}, {2, 2, 0, 0}, -1, 1, 1, 1), "");
  EXPECT_EQ(run({0, 3, 3, 2}, {2, 2, 2, 1}, -1, 1, 1, 1), "");
  EXPECT_THAT(run({1, 3, 3, 0}, {huge, 1, 0, 1}, -1, 1, 1, 1), HasSubstr("a window of"));
}

// An empty product may have any number of rows.
TEST_F(QuantizedInputTest, ProductsOfNothing) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Run("QuantizedMatMul", kBinary, {Bytes({huge, 0}), Bytes({0, 0}), F(0), F(1), F(0), F(1)}), "");
  EXPECT_EQ(Run("QuantizedMatMul", kBinary, {Bytes({0, huge}), Bytes({huge, 0}), F(0), F(1), F(0), F(1)}), "");
}

TEST_F(QuantizedInputTest, AttributesOutOfRange) {
  const auto bits = [](int64_t value) { return [=](Node* node) { node->SetAttr("num_bits", AttrValue::Int(value)); }; };
  const Types types = {{"T", DType::kFloat}};
  EXPECT_THAT(Run("QuantizeAndDequantizeV2", types, {F(1), F(0), F(1)}, bits(0)), HasSubstr("'num_bits' is 0"));
  EXPECT_THAT(Run("QuantizeAndDequantizeV4", types, {F(1), F(0), F(1)}, bits(62)),
              HasSubstr("'num_bits' is 62, expected 1 to 61"));
  EXPECT_THAT(Run("QuantizeAndDequantizeV3", types, {F(1), F(0), F(1), Tensor::Scalar<int32_t>(-1)}),
              HasSubstr("'num_bits' is -1"));
  EXPECT_THAT(
      Run("QuantizedRelu", {{"Tinput", DType::kQUint8}, {"out_type", DType::kQInt32}}, {Bytes({2}), F(0), F(1)}),
      HasSubstr("turns quint8 into qint32, expected equal types"));
}

TEST_F(QuantizedInputTest, RangesOfChannels) {
  const Tensor sums = Sums({1, 2, 2, 3}), three = Tensor::FromVector<float>(Shape({3}), {1, 2, 3});
  const Types types = {{"T", DType::kQInt32}, {"out_type", DType::kQInt8}};
  const auto clip = [](Node* node) { node->SetAttr("clip_value_max", AttrValue::Float(6)); };
  EXPECT_EQ(Run("RequantizationRangePerChannel", {types[0]}, {sums, three, three}, clip), "");
  EXPECT_THAT(Run("RequantizationRangePerChannel", {types[0]}, {sums, three, F(1)}, clip),
              HasSubstr("input 2 has the shape [], expected one end of a range for each of 3 channels"));
  EXPECT_THAT(Run("RequantizationRangePerChannel", {types[0]}, {Sums({4, 3}), three, three}, clip),
              HasSubstr("expected a rank of 4"));
  EXPECT_EQ(Run("RequantizePerChannel", types, {sums, three, three, F(-1), F(1)}), "");
  EXPECT_THAT(Run("RequantizePerChannel", types, {sums, three, three, F(0), F(0)}), HasSubstr("is from 0 to 0"));
  const Tensor unknown = Tensor::FromVector<float>(Shape({3}), {1, kNan, 3});
  EXPECT_THAT(Run("RequantizePerChannel", types, {sums, three, unknown, F(-1), F(1)}),
              HasSubstr("the range of channel 1"));
}

TEST_F(QuantizedInputTest, ImagesWithoutNorm) {
  const Types types = {{"T", DType::kQUint8}};
  const Tensor codes = Bytes({1, 2, 2, 3});
  EXPECT_EQ(Run("QuantizedInstanceNorm", types, {codes, F(-1), F(1)}), "");
  EXPECT_EQ(Run("QuantizedInstanceNorm", types, {Bytes({1, 0, 2, 3}), F(-1), F(1)}), "");
  EXPECT_THAT(Run("QuantizedInstanceNorm", types, {codes, F(1), F(1)}), HasSubstr("the range is from 1 to 1"));
  EXPECT_THAT(Run("QuantizedInstanceNorm", types, {Bytes({2, 3}), F(-1), F(1)}), HasSubstr("expected a rank of 4"));
  EXPECT_THAT(Run("QuantizedInstanceNorm", types, {codes, F(-1), F(1)},
                  [](Node* node) { node->SetAttr("output_range_given", AttrValue::Bool(true)); }),
              HasSubstr("'given_y_max' is 0, expected more than 'given_y_min', 0"));
}

}  // namespace
}  // namespace permafrost

// Tests that malformed files cause an error status with its reason in the array, reduction and elementwise kernels.
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

class BadInputTest : public testing::Test {
 protected:
  // Returns the error of a node of this op with these inputs and the attributes that set_attrs adds.
  template <typename SetAttrs>
  std::string Run(absl::string_view op, const std::vector<Tensor>& inputs, SetAttrs set_attrs) {
    Graph graph;
    Node* node = *graph.AddNode("n", Op::Named(op));
    for (size_t i = 0; i < inputs.size(); ++i) {
      graph.AddInput(node, {*graph.AddConst(absl::StrCat("c", i), inputs[i]), 0});
    }
    node->SetAttr("T", AttrValue::Type(inputs[0].dtype()));
    set_attrs(node);  // Other attributes have defaults.
    return std::string(KernelEvaluator().Evaluate(*node, inputs).status().message());
  }
  std::string Run(absl::string_view op, const std::vector<Tensor>& inputs) {
    return Run(op, inputs, [](Node*) {});
  }
};

Tensor Ints(std::vector<int32_t> values) {
  const Shape shape({static_cast<int64_t>(values.size())});
  return Tensor::FromVector(shape, std::move(values));
}

Tensor Floats(Shape shape) { return Tensor::FromVector(shape, std::vector<float>(shape.num_elements(), 1)); }

TEST_F(BadInputTest, ShapesThatDoNotFit) {
  EXPECT_THAT(Run("Add", {Floats({2}), Floats({3})}), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(Run("Reshape", {Floats({6}), Ints({4, -1})}), HasSubstr("does not hold"));
  EXPECT_THAT(Run("Reshape", {Floats({6}), Ints({-1, -1})}), HasSubstr("is not a shape"));
  EXPECT_THAT(Run("Reshape", {Floats({0}), Ints({0, -1})}), HasSubstr("does not determine"));
  EXPECT_THAT(Run("BroadcastTo", {Floats({2}), Ints({3})}), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(Run("Select", {Floats({2}), Floats({2}), Floats({3})}), HasSubstr("expected"));
}

TEST_F(BadInputTest, SpectraOfNothing) {
  const Tensor lines = *Tensor::FromBytes(DType::kComplex64, Shape({0, 3}), "", nullptr);
  const Tensor columns = *Tensor::FromBytes(DType::kComplex64, Shape({2, 0}), "", nullptr);
  const Tensor images = *Tensor::FromBytes(DType::kComplex64, Shape({0, 1, 1}), "", nullptr);
  EXPECT_THAT(Run("IRFFT2D", {lines, Ints({1, 2})}), HasSubstr("expected at least 1 by 2"));
  EXPECT_THAT(Run("IRFFT2D", {columns, Ints({2, 2})}), HasSubstr("expected at least 2 by 2"));
  EXPECT_THAT(Run("RFFT2D", {Floats({0, 3}), Ints({1, 2})}), HasSubstr("expected at least 1 by 2"));
  EXPECT_EQ(Run("IRFFT2D", {lines, Ints({0, 2})}), "");
  EXPECT_EQ(Run("IRFFT2D", {images, Ints({4, 4})}), "");
}

TEST_F(BadInputTest, AxesOutOfRange) {
  EXPECT_THAT(Run("Sum", {Floats({2}), Ints({1})}), HasSubstr("axis is 1, expected a value in [-1, 1)"));
  EXPECT_THAT(Run("Sum", {Floats({2}), Ints({0, -1})}), HasSubstr("axis 0 is given twice"));
  EXPECT_THAT(Run("ExpandDims", {Floats({2}), Ints({2})}), HasSubstr("axis is 2"));
  EXPECT_THAT(Run("ArgMax", {Floats({0}), Ints({0})}), HasSubstr("empty at axis 0"));
  EXPECT_THAT(Run("Transpose", {Floats({2, 2}), Ints({1, 1})}), HasSubstr("'perm' has 1 twice"));
}

TEST_F(BadInputTest, SizesThatNoMemoryHolds) {
  const Tensor huge = Ints({2147483647, 2147483647, 2147483647});
  EXPECT_THAT(
      Run("Fill", {huge, Tensor::Scalar(1.f)}, [](Node* node) { node->SetAttr("T", AttrValue::Type(DType::kFloat)); }),
      HasSubstr("more than 2^63 - 1 elements"));
  EXPECT_THAT(Run("Tile", {Floats({1, 1, 1}), huge}), HasSubstr("more than 2^63 - 1 elements"));
  EXPECT_THAT(Run("Fill", {Ints({-1}), Tensor::Scalar(1.f)},
                  [](Node* node) { node->SetAttr("T", AttrValue::Type(DType::kFloat)); }),
              HasSubstr("negative dimension"));
}

TEST_F(BadInputTest, IndicesOutOfBounds) {
  const auto types = [](Node* node) {
    node->SetAttr("Tparams", AttrValue::Type(DType::kFloat));
    node->SetAttr("Tindices", AttrValue::Type(DType::kInt32));
    node->SetAttr("Taxis", AttrValue::Type(DType::kInt32));
  };
  EXPECT_THAT(Run("GatherV2", {Floats({3}), Ints({0, 3}), Tensor::Scalar<int32_t>(0)}, types),
              HasSubstr("indices has 3 at element 1, expected a value in [0, 3)"));
  EXPECT_THAT(Run("GatherV2", {Floats({3}), Ints({-1}), Tensor::Scalar<int32_t>(0)}, types),
              HasSubstr("indices has -1"));
  EXPECT_THAT(Run("GatherNd", {Floats({3}), Tensor::FromVector<int32_t>(Shape({2, 1}), {0, 7})}, types),
              HasSubstr("row 1 of 'indices' is out of bounds"));
  EXPECT_THAT(Run("InvertPermutation", {Ints({0, 0})}), HasSubstr("has 0 twice"));
  const auto index = [](Node* node) { node->SetAttr("Index", AttrValue::Type(DType::kInt32)); };
  EXPECT_THAT(Run("Slice", {Floats({3}), Ints({2}), Ints({2})}, index), HasSubstr("has no 2 elements from 2"));
  EXPECT_THAT(Run("StridedSlice", {Floats({3}), Ints({0}), Ints({1}), Ints({0})}, index), HasSubstr("'strides' is 0"));
}

TEST_F(BadInputTest, ArithmeticWithoutResult) {
  EXPECT_THAT(Run("FloorDiv", {Ints({1, 2}), Ints({1, 0})}), HasSubstr("integer division by zero"));
  EXPECT_THAT(Run("FloorMod", {Ints({1}), Ints({0})}), HasSubstr("integer division by zero"));
  EXPECT_THAT(Run("Pow", {Ints({2}), Ints({-1})}), HasSubstr("negative integer power"));
  EXPECT_EQ(Run("Div", {Ints({-2147483647 - 1}), Ints({-1})}), "");
}

TEST_F(BadInputTest, StridesOfAnySize) {
  const auto types = [](Node* node) { node->SetAttr("Index", AttrValue::Type(DType::kInt64)); };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const auto both = [](int64_t value) { return Tensor::FromVector<int64_t>({2}, {value, value}); };
  EXPECT_EQ(Run("StridedSlice", {Floats({3, 3}), both(0), both(3), both(kMost)}, types), "");
  EXPECT_EQ(Run("StridedSlice", {Floats({3, 3}), both(2), both(kLeast), both(kLeast)}, types), "");
}

TEST_F(BadInputTest, ANormThatTheTypeDoesNotHold) {
  Graph graph;
  Node* node = *graph.AddNode("n", Op::Named("EuclideanNorm"));
  const int32_t least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();
  const std::vector<Tensor> inputs = {Ints({least, least}), Ints({0})};
  for (int i = 0; i < 2; ++i) graph.AddInput(node, {*graph.AddConst(absl::StrCat("c", i), inputs[i]), 0});
  node->SetAttr("T", AttrValue::Type(DType::kInt32));
  const auto outputs = KernelEvaluator().Evaluate(*node, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0], Tensor::Scalar<int32_t>(most));
}

// An empty tensor may have any number of rows, because none is read.
TEST_F(BadInputTest, RowsOfNothing) {
  const int64_t rows = int64_t{1} << 50;
  const Tensor codes = *Tensor::FromBytes(DType::kQInt8, Shape({rows, 2, 0}), "", nullptr);
  const Tensor range = Floats({2});
  EXPECT_EQ(Run("Dequantize", {codes, range, range}, [](Node* node) { node->SetAttr("axis", AttrValue::Int(1)); }), "");
}

TEST_F(BadInputTest, RangesWithoutEnd) {
  const auto types = [](Node* node) { node->SetAttr("Tidx", AttrValue::Type(DType::kFloat)); };
  EXPECT_THAT(Run("Range", {Tensor::Scalar(0.f), Tensor::Scalar(1.f), Tensor::Scalar(0.f)}, types),
              HasSubstr("'delta' is 0"));
  EXPECT_THAT(Run("Range", {Tensor::Scalar(0.f), Tensor::Scalar(1.f), Tensor::Scalar(-1.f)}, types),
              HasSubstr("no range"));
  EXPECT_THAT(Run("Range", {Tensor::Scalar(0.f), Tensor::Scalar(1e30f), Tensor::Scalar(1.f)}, types),
              HasSubstr("more elements"));
}

TEST_F(BadInputTest, UpdatesThatDoNotFit) {
  const auto types = [](Node* node) { node->SetAttr("Tindices", AttrValue::Type(DType::kInt32)); };
  const Tensor places = Tensor::FromVector<int32_t>(Shape({2, 1}), {0, 7});
  for (const char* op : {"TensorScatterUpdate", "TensorScatterAdd", "TensorScatterMin"}) {
    EXPECT_THAT(Run(op, {Floats({3}), places, Floats({2})}, types), HasSubstr("row 1 of 'indices' is out of bounds"));
    EXPECT_THAT(Run(op, {Floats({3}), places, Floats({3})}, types),
                HasSubstr("'updates' has the shape [3], expected [2]"));
    EXPECT_THAT(Run(op, {Floats({}), places, Floats({2})}, types), HasSubstr("does not index"));
  }
  const auto policy = [&](Node* node) {
    types(node);
    node->SetAttr("bad_indices_policy", AttrValue::String("SHRUG"));
  };
  EXPECT_THAT(Run("TensorScatterAdd", {Floats({3}), places, Floats({2})}, policy), HasSubstr("'SHRUG', expected"));
}

TEST_F(BadInputTest, TransformsOfMoreThanThereIs) {
  EXPECT_THAT(Run("RFFT2D", {Floats({2, 4}), Ints({3, 4})}), HasSubstr("expected at least 3 by 4"));
  EXPECT_THAT(Run("RFFT2D", {Floats({2, 4}), Ints({2, -4})}), HasSubstr("the transform has -4 points"));
  EXPECT_THAT(Run("RFFT", {Floats({8}), Ints({8388658})}),
              HasSubstr("expected at most 4194304, because its prime factor 4194329 exceeds"));
  EXPECT_THAT(Run("RFFT2D", {Floats({2, 4}), Ints({4})}), HasSubstr("expected 2"));
  EXPECT_THAT(Run("RFFT2D", {Floats({4}), Ints({4, 4})}), HasSubstr("rank of at least 2"));
}

TEST_F(BadInputTest, SoundsWithoutFeatures) {
  const auto window = [](int64_t size, int64_t stride) {
    return [size, stride](Node* node) {
      node->SetAttr("window_size", AttrValue::Int(size));
      node->SetAttr("stride", AttrValue::Int(stride));
    };
  };
  EXPECT_THAT(Run("AudioSpectrogram", {Floats({8, 1})}, window(1, 1)), HasSubstr("'window_size' is 1"));
  EXPECT_THAT(Run("AudioSpectrogram", {Floats({8, 1})}, window(4, 0)), HasSubstr("'stride' is 0"));
  EXPECT_THAT(Run("AudioSpectrogram", {Floats({8})}, window(4, 1)), HasSubstr("expected a rank of 2"));
  const Tensor spectrogram = Floats({1, 1, 9}), rate = Tensor::Scalar<int32_t>(8000);
  const auto limits = [](float low, float high) {
    return [low, high](Node* node) {
      node->SetAttr("lower_frequency_limit", AttrValue::Float(low));
      node->SetAttr("upper_frequency_limit", AttrValue::Float(high));
    };
  };
  EXPECT_EQ(Run("Mfcc", {spectrogram, rate}, limits(0, 4000)), "");
  EXPECT_THAT(Run("Mfcc", {spectrogram, rate}, limits(0, 5000)), HasSubstr("at most half of the sample rate, 8000"));
  EXPECT_THAT(Run("Mfcc", {spectrogram, rate}, limits(9, 8)), HasSubstr("the frequencies are limited to 9 to 8"));
  EXPECT_THAT(Run("Mfcc", {spectrogram, Tensor::Scalar<int32_t>(0)}), HasSubstr("'sample_rate' is 0"));
  EXPECT_THAT(Run("Mfcc", {Floats({1, 1, 1}), rate}), HasSubstr("expected 2 or more frequencies"));
  EXPECT_THAT(
      Run("Mfcc", {spectrogram, rate}, [](Node* node) { node->SetAttr("dct_coefficient_count", AttrValue::Int(41)); }),
      HasSubstr("'dct_coefficient_count' is 41, expected 1 to 'filterbank_channel_count', 40"));
}

}  // namespace
}  // namespace permafrost

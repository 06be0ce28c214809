// Tests of random inputs: reproducible, within their ranges, and an error if no shape is known.
#include "runtime_check/checking/seeded_inputs.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

TEST(SeededInputsTest, SameSeedSameTensor) {
  const auto a = SeededTensor(DType::kFloat, {2, 50}, 7);
  const auto b = SeededTensor(DType::kFloat, {2, 50}, 7);
  const auto c = SeededTensor(DType::kFloat, {2, 50}, 8);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_TRUE(*a == *b);
  EXPECT_FALSE(*a == *c);
  // SplitMix64's first number for seed 0 is E220A8397B1DCDAF; its upper half modulo 8 is 1.
  EXPECT_EQ(SeededTensor(DType::kInt32, {4}, 0)->elements<int32_t>()[0], 1);
}

TEST(SeededInputsTest, Ranges) {
  const auto extremes = [](const Tensor& tensor) {
    const std::vector<float> values = ToVector(tensor);
    return std::pair(*std::min_element(values.begin(), values.end()), *std::max_element(values.begin(), values.end()));
  };
  const auto [image_min, image_max] = extremes(*SeededTensor(DType::kFloat, {1, 20, 20, 3}, 1));
  EXPECT_TRUE(image_min >= 0 && image_min < 0.05 && image_max < 1 && image_max > 0.95) << image_min << image_max;
  const auto [min, max] = extremes(*SeededTensor(DType::kFloat, {1000}, 1));
  EXPECT_TRUE(min >= -1 && min < -0.95 && max < 1 && max > 0.95) << min << max;
  const auto indices = SeededTensor(DType::kInt64, {100}, 1);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_GE(indices->elements<int64_t>()[i], 0);
    EXPECT_LT(indices->elements<int64_t>()[i], 8);
  }
  const auto flags = SeededTensor(DType::kBool, {100}, 1);
  for (const char flag : flags->bytes()) EXPECT_TRUE(flag == 0 || flag == 1);
  EXPECT_EQ(SeededTensor(DType::kString, {3}, 1)->strings().size(), 3u);
}

TEST(SeededInputsTest, ShapesOfPlaceholders) {
  SmallGraph small;
  small.Placeholder("batch", DType::kFloat, {kUnknownDim, 3});
  small.Placeholder("length", DType::kFloat, {1, kUnknownDim});
  ASSERT_TRUE(small.mutable_graph().DeclareInterface({"batch", "length"}, {}).ok());
  const auto without = SeededInputs(small.graph().inputs(), {}, 1);
  EXPECT_EQ(without.status().message(),
            "input 'length': found shape [1,?], expected one that is known but for dimension 0");
  const auto with = SeededInputs(small.graph().inputs(), {{"length", Shape({1, 5})}}, 1);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ((*with)[0].shape(), Shape({1, 3}));
  EXPECT_EQ((*with)[1].shape(), Shape({1, 5}));
}

TEST(SeededInputsTest, Refused) {
  EXPECT_EQ(SeededTensor(DType::kFloat, {int64_t{1} << 40}, 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(SeededTensor(DType::kFloat, {INT64_MAX, INT64_MAX}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SeededTensor(DType::kResource, {1}, 1).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace permafrost

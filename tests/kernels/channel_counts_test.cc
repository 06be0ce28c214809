// Compares kernels that move or pool pixels with their definition, for every number of channels from one element to
// several registers.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/kernels/integer/integer_reduction.h"

namespace permafrost {
namespace {

constexpr int64_t kMostChannels = 140;
constexpr int64_t kSide = 5;

template <typename T>
std::vector<T> RandomCodes(int64_t count, std::mt19937& random) {
  std::vector<T> codes(static_cast<size_t>(count));
  for (T& code : codes) code = static_cast<T>(random());
  return codes;
}

template <typename T>
class PoolOfCodesTest : public testing::Test {};
using CodeTypes = testing::Types<int8_t, uint8_t, int16_t>;
TYPED_TEST_SUITE(PoolOfCodesTest, CodeTypes);

TYPED_TEST(PoolOfCodesTest, TakesTheMaximumOfEachChannel) {
  using T = TypeParam;
  std::mt19937 random(5);
  for (int64_t channels = 1; channels <= kMostChannels; ++channels) {
    const std::vector<T> codes = RandomCodes<T>(kSide * kSide * channels, random);
    const Tensor image = Tensor::FromVector(Shape{1, kSide, kSide, channels}, codes);
    Graph graph;
    Node* node = *graph.AddNode("n", ops::kMaxPool);
    graph.AddInput(node, {*graph.AddConst("c", image), 0});
    node->SetAttr("T", AttrValue::Type(image.dtype()));
    node->SetAttr("ksize", AttrValue::IntList({1, 2, 3, 1}));
    node->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
    node->SetAttr("padding", AttrValue::String("SAME"));
    const auto result = KernelEvaluator().Evaluate(*node, {image});
    ASSERT_TRUE(result.ok()) << result.status();
    constexpr int64_t kOutputs = 3;
    for (int64_t y = 0; y < kOutputs; ++y) {
      for (int64_t x = 0; x < kOutputs; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          T most = std::numeric_limits<T>::lowest();
          // SAME adds one line below, and a column on each side.
          for (int64_t line = 2 * y; line < std::min(kSide, 2 * y + 2); ++line) {
            for (int64_t column = std::max<int64_t>(0, 2 * x - 1); column < std::min(kSide, 2 * x + 2); ++column) {
              most = std::max(most, codes[static_cast<size_t>((line * kSide + column) * channels + c)]);
            }
          }
          ASSERT_EQ((*result)[0].template elements<T>()[static_cast<size_t>((y * kOutputs + x) * channels + c)], most)
              << channels << " channels, pixel " << y << ", " << x << ", channel " << c;
        }
      }
    }
  }
}

// Divides sums by numbers of pixels below and above the limit of exact quotients of floats.
TYPED_TEST(PoolOfCodesTest, TakesTheRoundedMeanOfEachChannel) {
  using T = TypeParam;
  std::mt19937 random(7);
  const CodeType type = sizeof(T) == 2 ? CodeType::kInt16 : T(-1) < T(0) ? CodeType::kInt8 : CodeType::kUint8;
  for (const int64_t side : {1, 2, 3, 7, 12, 190}) {
    constexpr int64_t kChannels = 37;
    const int64_t pixels = side * side;
    for (const bool is_extreme : {false, true}) {
      std::vector<T> codes = RandomCodes<T>(pixels * kChannels, random);
      if (is_extreme) {
        for (T& code : codes) code = random() % 64 == 0 ? code : std::numeric_limits<T>::lowest();
      }
      Window window;
      for (WindowAxis* axis : {&window.y, &window.x}) {
        axis->input = axis->taps = axis->stride = side;
        axis->output = axis->dilation = 1;
      }
      const auto pool = IntegerPool::Make(PoolOp::kAverage, {type, 1, 0}, FusedActivation::kNone, 1, kChannels, window);
      ASSERT_TRUE(pool.ok()) << pool.status();
      std::vector<char> scratch(static_cast<size_t>(pool->scratch_size()));
      std::vector<T> means(kChannels);
      pool->Compute(codes.data(), 0, 1, scratch.data(), means.data());
      for (int64_t c = 0; c < kChannels; ++c) {
        int64_t sum = 0;
        for (int64_t i = 0; i < pixels; ++i) sum += codes[static_cast<size_t>(i * kChannels + c)];
        const int64_t half = sum > 0 ? pixels / 2 : -(pixels / 2);
        ASSERT_EQ(means[static_cast<size_t>(c)], static_cast<T>((sum + half) / pixels)) << side << ", channel " << c;
      }
    }
  }
}

TEST(ConcatTest, JoinsRowsOfEveryLength) {
  std::mt19937 random(9);
  constexpr int64_t kRows = 6, kInner = 2;
  for (int64_t size = 1; size <= kMostChannels; ++size) {
    const int64_t sizes[] = {size, kMostChannels + 1 - size};
    std::vector<Tensor> inputs;
    std::vector<std::vector<int8_t>> codes;
    for (const int64_t each : sizes) {
      codes.push_back(RandomCodes<int8_t>(kRows * each * kInner, random));
      inputs.push_back(Tensor::FromVector(Shape{2, kRows / 2, each, kInner}, codes.back()));
    }
    inputs.push_back(Tensor::Scalar<int32_t>(2));
    Graph graph;
    Node* node = *graph.AddNode("n", ops::kConcatV2);
    for (size_t i = 0; i < inputs.size(); ++i) {
      graph.AddInput(node, {*graph.AddConst(absl::StrCat("c", i), inputs[i]), 0});
    }
    node->SetAttr("T", AttrValue::Type(DType::kInt8));
    node->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
    node->SetAttr("N", AttrValue::Int(2));
    const auto result = KernelEvaluator().Evaluate(*node, inputs);
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<int8_t> expected;
    for (int64_t row = 0; row < kRows; ++row) {
      for (size_t i = 0; i < codes.size(); ++i) {
        const auto begin = codes[i].begin() + row * sizes[i] * kInner;
        expected.insert(expected.end(), begin, begin + sizes[i] * kInner);
      }
    }
    EXPECT_EQ(std::string((*result)[0].bytes()), std::string(expected.begin(), expected.end())) << size;
  }
}

}  // namespace
}  // namespace permafrost

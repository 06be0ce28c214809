// Compares products and convolutions of codes, with every set of inner loops, with plain loops over random operands of
// many sizes, and checks that impossible parameters are rejected.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/kernels/integer/byte_tiles.h"
#include "runtime_check/kernels/integer/integer_convolution.h"
#include "runtime_check/kernels/integer/integer_hybrid.h"
#include "runtime_check/kernels/integer/integer_loops.h"

namespace permafrost {
namespace {

using Memory = std::vector<int64_t>;  // Aligned to 8 bytes.
Memory Allocate(int64_t bytes) { return Memory(bytes / 8 + 1); }
char* BytesAt(Memory& memory) { return reinterpret_cast<char*>(memory.data()); }

template <typename T>
std::vector<T> RandomCodes(std::mt19937* random, int64_t count) {
  std::vector<T> codes(count);
  for (T& code : codes) code = static_cast<T>((*random)());
  return codes;
}

IntegerWeighting WeightingOf(CodeType type) {
  static const float kScale = 0.01f;
  IntegerWeighting weighting;
  weighting.input = {type, 0.02f, type == CodeType::kInt8 ? -3 : type == CodeType::kUint8 ? 120 : 0};
  weighting.output = {type, type == CodeType::kInt16 ? 0.05f : 1.3f, type == CodeType::kInt16 ? 0 : 5};
  weighting.filter_scales = {&kScale, 1};
  weighting.filter_zero_point = type == CodeType::kUint8 ? 131 : 0;
  weighting.bias = BiasType::kInt32;
  return weighting;
}

int32_t Clamped(int64_t code, CodeType type) { return RangeOf(type).Clamp(code); }

// The code of a sum, by the definition of its rounding.
int32_t CodeOf(int64_t sum, const IntegerWeighting& weighting, bool is_wide) {
  const bool is_float = weighting.input.type == CodeType::kUint8;
  const double product = is_float ? static_cast<double>(weighting.input.scale * weighting.filter_scales[0])
                                  : static_cast<double>(weighting.input.scale) * weighting.filter_scales[0];
  const double factor = product / weighting.output.scale;
  const FixedMultiplier multiplier = QuantizeMultiplier(factor);
  int64_t code = 0;
  if (weighting.rounding == Rounding::kExact) {
    code = RoundAway(static_cast<double>(sum) * factor);
  } else if (is_wide) {
    code = MultiplyWide(sum, multiplier);
  } else if (weighting.rounding == Rounding::kTwice) {
    code = MultiplyTwice(static_cast<int32_t>(sum), multiplier);
  } else {
    code = MultiplyOnce(static_cast<int32_t>(sum), multiplier);
  }
  return Clamped(code + weighting.output.zero_point, weighting.output.type);
}

template <typename T, typename W>
void ExpectProduct(CodeType type, Rounding rounding, BiasType bias_type, int64_t rows, int64_t depth, int64_t columns,
                   const IntegerLoops* loops) {
  std::mt19937 random(static_cast<uint32_t>(rows * 7919 + depth * 31 + columns));
  const std::vector<T> left = RandomCodes<T>(&random, rows * depth);
  const std::vector<W> right = RandomCodes<W>(&random, depth * columns);
  std::vector<int32_t> bias(columns);
  std::vector<int64_t> wide_bias(columns);
  for (int64_t c = 0; c < columns; ++c) wide_bias[c] = bias[c] = static_cast<int32_t>(random() % 20000) - 10000;
  IntegerWeighting weighting = WeightingOf(type);
  weighting.rounding = rounding;
  weighting.bias = bias_type;
  const bool is_wide = type == CodeType::kInt16 && bias_type != BiasType::kInt32;
  IntegerProduct::Depth layout;
  layout.inputs = depth;
  layout.input_step = columns;
  IntegerProductTraits traits;
  traits.loops = loops;
  const absl::StatusOr<IntegerProduct> made = IntegerProduct::Make(weighting, layout, columns, 1, traits);
  ASSERT_TRUE(made.ok()) << made.status();
  Memory packed = Allocate(made->packed_size()), scratch = Allocate(made->scratch_size());
  const void* given = bias_type == BiasType::kInt64 ? static_cast<const void*>(wide_bias.data()) : bias.data();
  made->Pack(right.data(), bias_type == BiasType::kNone ? nullptr : given, BytesAt(packed));
  std::vector<T> output(rows * columns + 1, T{77});  // The last element is not written.
  made->Compute(left.data(), BytesAt(packed), 0, rows, BytesAt(scratch), output.data());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      int64_t sum = bias_type == BiasType::kNone ? 0 : bias[c];
      for (int64_t k = 0; k < depth; ++k) {
        sum += int64_t{left[r * depth + k] - weighting.input.zero_point} *
               (right[k * columns + c] - weighting.filter_zero_point);
      }
      ASSERT_EQ(output[r * columns + c], CodeOf(sum, weighting, is_wide))
          << (loops == nullptr ? "default" : loops->name) << ", " << rows << " x " << depth << " x " << columns
          << ", row " << r << ", column " << c;
    }
  }
  EXPECT_EQ(output.back(), T{77});
}

TEST(IntegerProductTest, EqualsPlainLoopsWithAllInnerLoops) {
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 1000, 10}, {2, 3, 33},  {13, 17, 64}, {60, 5, 31},
                              {25, 64, 96}, {3, 0, 5},     {49, 9, 40}, {7, 2050, 3}};
  std::vector<const IntegerLoops*> all(SupportedIntegerLoops().begin(), SupportedIntegerLoops().end());
  all.push_back(nullptr);  // Those that products select themselves.
  for (const IntegerLoops* loops : all) {
    for (const auto& size : sizes) {
      for (const Rounding rounding : {Rounding::kTwice, Rounding::kOnce, Rounding::kExact}) {
        for (const BiasType bias : {BiasType::kNone, BiasType::kInt32, BiasType::kInt64}) {
          ExpectProduct<int16_t, int8_t>(CodeType::kInt16, rounding, bias, size[0], size[1], size[2], loops);
        }
        for (const BiasType bias : {BiasType::kNone, BiasType::kInt32}) {
          ExpectProduct<int8_t, int8_t>(CodeType::kInt8, rounding, bias, size[0], size[1], size[2], loops);
          ExpectProduct<uint8_t, uint8_t>(CodeType::kUint8, rounding, bias, size[0], size[1], size[2], loops);
        }
      }
    }
  }
}

TEST(IntegerLoopsTest, AgreeWithTheCompilerOnTheProcessor) {
#if defined(__x86_64__)
  const bool has_vnni = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vnni");
  EXPECT_EQ(SupportsByteDotProducts(), has_vnni);
  EXPECT_EQ(SupportedProductTiles() != nullptr, has_vnni);
#endif
}

// Products of the largest codes: sums of int16 reach the limits of 32 bits within a few hundred products.
TEST(IntegerProductTest, WideSumsDoNotOverflow) {
  const int64_t depth = 5000;
  const std::vector<int16_t> left(depth, -32768);
  const std::vector<int8_t> right(depth, -128);
  IntegerWeighting weighting = WeightingOf(CodeType::kInt16);
  weighting.bias = BiasType::kNone;
  weighting.output.scale = 1e4f;
  IntegerProduct::Depth layout;
  layout.inputs = depth;
  layout.input_step = 1;
  const absl::StatusOr<IntegerProduct> made = IntegerProduct::Make(weighting, layout, 1, 1);
  ASSERT_TRUE(made.ok());
  Memory packed = Allocate(made->packed_size()), scratch = Allocate(made->scratch_size());
  made->Pack(right.data(), nullptr, BytesAt(packed));
  int16_t output = 0;
  made->Compute(left.data(), BytesAt(packed), 0, 1, BytesAt(scratch), &output);
  EXPECT_EQ(output, CodeOf(depth * 32768 * 128, weighting, true));
}

struct Geometry {
  int64_t size, taps, stride, dilation, pad, output;
};

Window WindowOf(const Geometry& g) {
  Window window;
  for (WindowAxis* axis : {&window.y, &window.x}) {
    axis->input = g.size;
    axis->taps = g.taps;
    axis->stride = g.stride;
    axis->dilation = g.dilation;
    axis->pad_before = g.pad;
    axis->output = g.output;
  }
  return window;
}

TEST(IntegerConvolutionTest, EqualsPlainLoops) {
  const Geometry geometries[] = {{7, 3, 1, 1, 1, 7},  {9, 3, 2, 1, 0, 4}, {8, 2, 1, 3, 2, 9}, {5, 1, 1, 1, 0, 5},
                                 {6, 1, 2, 1, 0, 3},  {3, 5, 1, 1, 2, 3}, {4, 3, 3, 1, 3, 3}, {65, 3, 1, 1, 1, 65},
                                 {70, 2, 2, 1, 0, 35}};  // The last two have several strips.
  for (const Geometry& g : geometries) {
    // 0 for a convolution of 6 channels. Blocks of channels that divide 32 hold several pixels.
    for (const int64_t depthwise_channels : {0, 36, 16, 4, 1}) {
      const bool is_depthwise = depthwise_channels > 0;
      for (const int64_t groups : {1, 2}) {
        std::mt19937 random(5);
        ConvolutionSizes sizes;
        sizes.batch = 2;
        sizes.input_channels = is_depthwise ? depthwise_channels : 6;
        sizes.output_channels = is_depthwise ? depthwise_channels * groups : 40;
        sizes.groups = is_depthwise ? sizes.input_channels : groups;
        sizes.window = WindowOf(g);
        const int64_t inputs = sizes.input_channels / sizes.groups, outputs = sizes.output_channels;
        const auto input = RandomCodes<int8_t>(&random, 2 * g.size * g.size * sizes.input_channels);
        const auto filter = RandomCodes<int8_t>(&random, g.taps * g.taps * inputs * outputs);
        std::vector<float> scales(outputs);
        for (float& scale : scales) scale = 0.001f * static_cast<float>(1 + random() % 30);
        IntegerWeighting weighting = WeightingOf(CodeType::kInt8);
        weighting.filter_scales = scales;
        weighting.bias = BiasType::kNone;
        std::vector<int8_t> output(2 * g.output * g.output * outputs);
        const FilterStrides strides = sizes.OutputLast();  // Also the layout of depthwise filters.
        if (is_depthwise) {
          const auto made = IntegerDepthwise::Make(weighting, sizes);
          ASSERT_TRUE(made.ok()) << made.status();
          Memory packed = Allocate(made->packed_size()), scratch = Allocate(made->scratch_size());
          made->Pack(filter.data(), nullptr, BytesAt(packed));
          made->Compute(input.data(), BytesAt(packed), 0, made->rows(), BytesAt(scratch), output.data());
        } else {
          const auto made = IntegerConvolution::Make(weighting, sizes, strides);
          ASSERT_TRUE(made.ok()) << made.status();
          Memory packed = Allocate(made->packed_size()), scratch = Allocate(made->scratch_size());
          made->Pack(filter.data(), nullptr, BytesAt(packed));
          made->Compute(input.data(), BytesAt(packed), 0, made->rows(), BytesAt(scratch), output.data());
          // The same filter in TensorFlow Lite's layout.
          const int64_t depth = g.taps * g.taps * inputs;
          std::vector<int8_t> output_first(filter.size()), other(output.size());
          for (int64_t k = 0; k < depth; ++k) {
            for (int64_t c = 0; c < outputs; ++c) output_first[c * depth + k] = filter[k * outputs + c];
          }
          const auto second = IntegerConvolution::Make(weighting, sizes, sizes.OutputFirst());
          ASSERT_TRUE(second.ok()) << second.status();
          second->Pack(output_first.data(), nullptr, BytesAt(packed));
          second->Compute(input.data(), BytesAt(packed), 0, second->rows(), BytesAt(scratch), other.data());
          EXPECT_EQ(other, output);
        }
        for (int64_t i = 0; i < static_cast<int64_t>(output.size()); ++i) {
          const int64_t c = i % outputs, x = i / outputs % g.output, y = i / outputs / g.output % g.output;
          const int64_t image = i / outputs / g.output / g.output, group = c / (outputs / sizes.groups);
          int64_t sum = 0;
          for (int64_t ty = 0; ty < g.taps; ++ty) {
            for (int64_t tx = 0; tx < g.taps; ++tx) {
              const int64_t in_y = y * g.stride - g.pad + ty * g.dilation,
                            in_x = x * g.stride - g.pad + tx * g.dilation;
              if (in_y < 0 || in_y >= g.size || in_x < 0 || in_x >= g.size) continue;
              for (int64_t k = 0; k < inputs; ++k) {
                const int64_t at =
                    ((image * g.size + in_y) * g.size + in_x) * sizes.input_channels + group * inputs + k;
                sum +=
                    (input[at] - weighting.input.zero_point) * filter[((ty * g.taps + tx) * inputs + k) * outputs + c];
              }
            }
          }
          IntegerWeighting channel = weighting;
          channel.filter_scales = absl::MakeConstSpan(scales).subspan(c, 1);
          ASSERT_EQ(output[i], CodeOf(sum, channel, false)) << "taps " << g.taps << ", stride " << g.stride
                                                            << (is_depthwise ? ", depthwise" : "") << ", element " << i;
        }
      }
    }
  }
}

// Scatters every input pixel, as the operator is defined.
TEST(IntegerTransposeConvolutionTest, EqualsScatteredProducts) {
  const Geometry geometries[] = {{8, 3, 2, 1, 0, 4}, {9, 2, 3, 1, 0, 3}, {5, 3, 1, 1, 1, 5}, {7, 4, 2, 1, 1, 3}};
  for (const Geometry& g : geometries) {
    std::mt19937 random(7);
    ConvolutionSizes sizes;
    sizes.batch = 2;
    sizes.input_channels = 3;
    sizes.output_channels = 5;
    sizes.window = WindowOf(g);
    const IntegerWeighting weighting = WeightingOf(CodeType::kUint8);
    const auto input = RandomCodes<uint8_t>(&random, 2 * g.output * g.output * 3);
    const auto filter = RandomCodes<uint8_t>(&random, g.taps * g.taps * 15);
    const std::vector<int32_t> bias = {1, -200, 3000, 0, 5};
    std::vector<int64_t> sums(2 * g.size * g.size * 5);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = bias[i % 5];
    for (int64_t pixel = 0; pixel < 2 * g.output * g.output; ++pixel) {
      const int64_t x = pixel % g.output, y = pixel / g.output % g.output, image = pixel / g.output / g.output;
      for (int64_t tap = 0; tap < g.taps * g.taps; ++tap) {
        const int64_t to_y = y * g.stride - g.pad + tap / g.taps, to_x = x * g.stride - g.pad + tap % g.taps;
        if (to_y < 0 || to_y >= g.size || to_x < 0 || to_x >= g.size) continue;
        for (int64_t i = 0; i < 15; ++i) {
          sums[((image * g.size + to_y) * g.size + to_x) * 5 + i / 3] +=
              (input[pixel * 3 + i % 3] - weighting.input.zero_point) *
              (filter[(i / 3 * g.taps * g.taps + tap) * 3 + i % 3] - weighting.filter_zero_point);
        }
      }
    }
    const auto made = IntegerTransposeConvolution::Make(weighting, sizes, sizes.OutputFirst());
    ASSERT_TRUE(made.ok()) << made.status();
    Memory packed = Allocate(made->packed_size()), scratch = Allocate(made->scratch_size());
    made->Pack(filter.data(), bias.data(), BytesAt(packed));
    std::vector<uint8_t> output(sums.size());
    made->Compute(input.data(), BytesAt(packed), 0, made->rows(), BytesAt(scratch), output.data());
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(output[i], CodeOf(sums[i], weighting, false)) << "stride " << g.stride << ", element " << i;
    }
  }
}

std::string ErrorOf(const IntegerWeighting& weighting) {
  ConvolutionSizes sizes;
  sizes.batch = 1;
  sizes.input_channels = sizes.output_channels = 4;
  sizes.window = WindowOf({4, 3, 1, 1, 1, 4});
  const auto made = IntegerConvolution::Make(weighting, sizes, sizes.OutputFirst());
  return made.ok() ? "" : std::string(made.status().message());
}

// LiteRT adds the zero point to the rounded quotient, so ties are rounded away from 0 and not from the zero point.
TEST(HybridRowTest, RoundsBeforeTheZeroPointIsAdded) {
  const std::vector<float> row = {-100, 155, 35.5f, 36.5f, -35.5f, -0.5f, 1.5f, -99.5f, 127.5f, std::nanf("")};
  std::vector<int8_t> codes(row.size());
  const RowScale scale = QuantizeRowAsymmetric(static_cast<int64_t>(row.size()), row.data(), codes.data());
  EXPECT_EQ(scale.scale, 1);
  EXPECT_EQ(scale.zero_point, -28);
  EXPECT_EQ(codes, (std::vector<int8_t>{-128, 127, 8, 9, -64, -29, -26, -128, 100, 0}));
}

TEST(HybridRowTest, EqualsPlainLoops) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(-3, 5);
  for (int64_t count = 1; count < 100; ++count) {
    std::vector<float> row(static_cast<size_t>(count));
    for (float& x : row) x = values(random);
    std::vector<int8_t> codes(row.size()), expected(row.size());
    const RowScale scale = QuantizeRowAsymmetric(count, row.data(), codes.data());
    const float low = std::min(0.0f, *std::min_element(row.begin(), row.end()));
    const float high = std::max(0.0f, *std::max_element(row.begin(), row.end()));
    EXPECT_EQ(scale.scale, static_cast<float>((static_cast<double>(high) - static_cast<double>(low)) / 255));
    for (size_t i = 0; i < row.size(); ++i) {
      const float code = std::round(row[i] * (1.0f / scale.scale)) + static_cast<float>(scale.zero_point);
      expected[i] = static_cast<int8_t>(std::clamp(code, -128.0f, 127.0f));
    }
    EXPECT_EQ(codes, expected) << count;
    const RowScale symmetric = QuantizeRowSymmetric(count, row.data(), codes.data());
    EXPECT_EQ(symmetric.zero_point, 0);
    EXPECT_EQ(symmetric.scale, std::max(-low, high) / 127);
    for (size_t i = 0; i < row.size(); ++i) {
      expected[i] = static_cast<int8_t>(std::round(row[i] * (127.0f / std::max(-low, high))));
    }
    EXPECT_EQ(codes, expected) << count;
  }
}

TEST(IntegerConvolutionTest, RejectsImpossibleParameters) {
  const IntegerWeighting good = WeightingOf(CodeType::kInt8);
  EXPECT_EQ(ErrorOf(good), "");
  for (const float scale : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
    IntegerWeighting bad = good;
    bad.input.scale = scale;
    EXPECT_NE(ErrorOf(bad).find("input: scale"), std::string::npos) << scale;
    bad = good;
    bad.filter_scales = {&scale, 1};
    EXPECT_NE(ErrorOf(bad).find("filter: scale"), std::string::npos) << scale;
  }
  IntegerWeighting bad = good;
  bad.input.zero_point = 128;
  EXPECT_EQ(ErrorOf(bad), "input: zero point 128 is not in [-128, 127], the range of int8");
  bad = good;
  bad.filter_zero_point = 3;
  EXPECT_EQ(ErrorOf(bad), "filter: zero point 3, expected 0 for an input of int8");
  const float scales[3] = {1, 1, 1};
  bad = good;
  bad.filter_scales = scales;
  EXPECT_EQ(ErrorOf(bad), "filter: has 3 scales, expected 1 or 4, one for each channel");
  bad = good;
  bad.output.scale = 1e-38f;
  EXPECT_NE(ErrorOf(bad).find("expected less than 2^30"), std::string::npos) << ErrorOf(bad);
  bad = good;
  bad.bias = BiasType::kInt64;
  EXPECT_EQ(ErrorOf(bad), "bias: has type int64, expected int32 for an input of int8");
}

TEST(IntegerConvolutionTest, RejectsSizesThatOverflow) {
  const IntegerWeighting weighting = WeightingOf(CodeType::kInt8);
  ConvolutionSizes sizes;
  sizes.batch = int64_t{1} << 40;
  sizes.input_channels = sizes.output_channels = 1 << 20;
  sizes.window = WindowOf({1 << 20, 3, 1, 1, 1, 1 << 20});
  EXPECT_FALSE(IntegerConvolution::Make(weighting, sizes, sizes.OutputFirst()).ok());
  EXPECT_FALSE(IntegerDepthwise::Make(weighting, sizes).ok());
  EXPECT_FALSE(IntegerTransposeConvolution::Make(weighting, sizes, sizes.OutputFirst()).ok());
  sizes.batch = 1;
  sizes.input_channels = 3;
  sizes.output_channels = 4;
  sizes.groups = 2;
  sizes.window = WindowOf({4, 3, 1, 1, 1, 4});
  EXPECT_FALSE(IntegerConvolution::Make(weighting, sizes, sizes.OutputFirst()).ok());
}

}  // namespace
}  // namespace permafrost

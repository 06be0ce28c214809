// Compares sums and products of codes with their definition, for all pairs of codes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/kernels/integer/integer_elementwise.h"

namespace permafrost {
namespace {

constexpr int kCodes = 256;

int32_t CodeAt(CodeType type, int i) { return type == CodeType::kUint8 ? i : i - 128; }

// The code of LiteRT's reference kernels: operands with 20 fraction bits, each product rounded twice.
int32_t Expected(BinaryOp op, const Affine& a, const Affine& b, const Affine& y, int32_t first, int32_t second) {
  const CodeRange range = RangeOf(y.type);
  const int32_t x = first - a.zero_point, z = second - b.zero_point;
  if (op == BinaryOp::kMul) {
    const FixedMultiplier factor = QuantizeMultiplier(static_cast<double>(a.scale * b.scale / y.scale));
    return range.Clamp(int64_t{MultiplyTwice(x * z, factor)} + y.zero_point);
  }
  const double twice_largest = 2.0 * static_cast<double>(std::max(a.scale, b.scale));
  const int32_t left = MultiplyTwice(x * (1 << 20), QuantizeMultiplier(static_cast<double>(a.scale) / twice_largest));
  const int32_t right = MultiplyTwice(z * (1 << 20), QuantizeMultiplier(static_cast<double>(b.scale) / twice_largest));
  const double factor = twice_largest / static_cast<double>(static_cast<float>(1 << 20) * y.scale);
  const int32_t sum = op == BinaryOp::kAdd ? left + right : left - right;
  return range.Clamp(int64_t{MultiplyTwice(sum, QuantizeMultiplier(factor))} + y.zero_point);
}

TEST(IntegerBinaryTest, EqualsTheDefinitionForAllPairsOfCodes) {
  // Scales of the operands and of the output. Equal ones, and powers of two, give many ties.
  std::vector<std::array<float, 3>> scales = {
      {0.02f, 0.02f, 0.04f}, {0.5f, 0.25f, 1.0f},     {0.013f, 0.0712f, 0.0571f},
      {1e-4f, 0.9f, 0.7f},   {0.11f, 0.07f, 0.003f},  {0.3f, 0.4f, 60.0f},
      {1.f, 1.f, 1.f},       {0.037f, 0.037f, 0.037f}};
  std::mt19937 random(11);
  std::uniform_real_distribution<float> exponent(-3, 1);
  for (int i = 0; i < 24; ++i) {
    scales.push_back({std::exp(exponent(random)), std::exp(exponent(random)), std::exp(exponent(random))});
  }
  const int zeros[][3] = {{0, 0, 0}, {-128, 127, 5}, {-3, 17, -128}};
  for (const CodeType type : {CodeType::kInt8, CodeType::kUint8}) {
    for (const auto& scale : scales) {
      for (const auto& zero : zeros) {
        const int32_t offset = type == CodeType::kUint8 ? 128 : 0;
        const Affine a = {type, scale[0], zero[0] + offset}, b = {type, scale[1], zero[1] + offset};
        const Affine y = {type, scale[2], zero[2] + offset};
        for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul}) {
          const auto made = IntegerBinary::Make(op, a, b, y);
          ASSERT_TRUE(made.ok()) << made.status();
          std::vector<uint8_t> first(kCodes), second(kCodes), output(kCodes);
          for (int i = 0; i < kCodes; ++i) second[i] = static_cast<uint8_t>(CodeAt(type, i));
          for (int i = 0; i < kCodes; ++i) {
            const int32_t code = CodeAt(type, i);
            std::fill(first.begin(), first.end(), static_cast<uint8_t>(code));
            // A step of 0 repeats an operand; the count is no multiple of a register for some rows.
            const int64_t count = kCodes - i % 17, step = i % 2;
            ASSERT_TRUE(made->Compute(count, first.data(), step, second.data(), 1, output.data()).ok());
            for (int64_t j = 0; j < count; ++j) {
              const int32_t other = CodeAt(type, static_cast<int>(j));
              ASSERT_EQ(output[j], static_cast<uint8_t>(Expected(op, a, b, y, code, other)))
                  << "operator " << static_cast<int>(op) << ", codes " << code << " and " << other << ", scales "
                  << scale[0] << ", " << scale[1] << ", " << scale[2];
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace permafrost

// Implements tables of functions of 16-bit codes.
#include "runtime_check/kernels/integer/integer_tables.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

constexpr int kIntervals = 512;

template <typename Real, typename Function>
void Fill(const Function& f, Real input_scale, int32_t input_zero, Real output_scale, int32_t output_zero,
          std::vector<int16_t>* table) {
  const Real low = input_scale * static_cast<Real>(-32768 - input_zero);
  const Real high = input_scale * static_cast<Real>(32767 - input_zero);
  const Real step = (high - low) / static_cast<Real>(kIntervals);
  const Real output_low = output_scale * static_cast<Real>(-32768 - output_zero);
  const Real output_high = output_scale * static_cast<Real>(32767 - output_zero);
  const Real inverse = Real{65536} / (output_high - output_low);
  const auto code = [](Real value) {
    // NaN has the smallest code.
    if (!(value > Real{-32768})) return int16_t{-32768};
    return value >= Real{32767} ? int16_t{32767} : static_cast<int16_t>(value);
  };
  table->resize(kIntervals + 1);
  for (int i = 0; i < kIntervals; ++i) {
    const Real x = low + static_cast<Real>(i) * step;
    const Real value = f(x), middle = f(x + step / Real{2}), next = f(low + static_cast<Real>(i + 1) * step);
    const Real sample = std::round(value * inverse);
    const Real interpolated = std::round((next * inverse + sample) / Real{2});
    const Real bias = std::round((interpolated - std::round(middle * inverse)) / Real{2});
    (*table)[i] = code(sample - bias);
  }
  (*table)[kIntervals] = code(std::round(f(high) * inverse));
}

}  // namespace

void FillTable513(absl::FunctionRef<float(float)> f, const Affine& input, const Affine& output,
                  std::vector<int16_t>* table) {
  Fill<float>(f, input.scale, input.zero_point, output.scale, output.zero_point, table);
}

void FillTable513(absl::FunctionRef<double(double)> f, double input_scale, int32_t input_zero, double output_scale,
                  int32_t output_zero, std::vector<int16_t>* table) {
  Fill<double>(f, input_scale, input_zero, output_scale, output_zero, table);
}

void FillSigmoidTable(std::vector<uint16_t>* table) {
  // LiteRT's table has the rounded value, but for these entries, which are one more; found by comparing its outputs.
  constexpr uint8_t kOneMore[] = {4,  8,  12, 14, 15, 16, 17, 19, 20,  21,  22,  25,  27,  28, 29,
                                  30, 31, 33, 34, 35, 37, 39, 40, 41,  43,  44,  45,  46,  49, 50,
                                  54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255};
  table->resize(256);
  for (int i = 0; i < 256; ++i) {
    const double value = std::floor(65536 / (1 + std::exp(-i / 24.0)) + 0.5);
    (*table)[i] = static_cast<uint16_t>(std::min(value, 65535.0));
  }
  for (const uint8_t i : kOneMore) ++(*table)[i];
}

absl::Status SigmoidInputScale(float scale, bool is_tanh, FixedMultiplier* factor) {
  const double exponent = std::log(static_cast<double>(scale)) / std::log(2.0);
  const double rounded = std::round(exponent);
  // Scales of 2^-12, and 2^-11 for TANH, are taken as exact.
  if (std::abs(exponent - rounded) < 1e-3 && (rounded == -12 || (is_tanh && rounded == -11))) {
    *factor = {3 << static_cast<int>(12 + rounded), 0};
    return absl::OkStatus();
  }
  // The largest multiplier below 2^15.
  double multiplier = static_cast<double>(scale) * 4096 * 3;
  if (!(multiplier < 2147483648.0)) {  // 2^31.
    return absl::InvalidArgumentError(absl::StrCat("input: scale ", scale, " is too large for int16"));
  }
  int shift = 0;
  while (multiplier <= 32767.0 / 2 && shift <= 30) {
    ++shift;
    multiplier *= 2;
  }
  *factor = {static_cast<int32_t>(multiplier), shift};
  return absl::OkStatus();
}

namespace {

// The position of a code, rounded half up.
int64_t PositionOf(int16_t code, FixedMultiplier factor) {
  const int64_t product = int64_t{code} * factor.multiplier;
  return factor.shift > 0 ? (product + (int64_t{1} << (factor.shift - 1))) >> factor.shift : product;
}

// The table's value at |position|, with `bits` bits between entries, as a number with 16 + bits bits.
int64_t ValueAt(int64_t position, int bits, int64_t limit, const uint16_t* table) {
  const int64_t magnitude = std::abs(position), index = magnitude >> bits;
  if (index >= 255) return limit;
  const int64_t rest = magnitude & ((int64_t{1} << bits) - 1);
  return (int64_t{table[index]} << bits) + rest * (table[index + 1] - table[index]);
}

}  // namespace

int16_t SigmoidByTable(int16_t code, FixedMultiplier factor, const uint16_t* table) {
  const int64_t position = PositionOf(code, factor);
  const int64_t value = ValueAt(position, 9, int64_t{0x7FFF} << 10, table);
  const int64_t half = 1 << 9;
  return static_cast<int16_t>((position >= 0 ? value + half : (1 << 25) - value + half - 1) >> 10);
}

int16_t TanhByTable(int16_t code, FixedMultiplier factor, const uint16_t* table) {
  const int64_t position = PositionOf(code, factor);
  // tanh(x) = 2 sigmoid(2 x) - 1, so a position has one bit less between entries.
  const int64_t value = ValueAt(position, 8, int64_t{0xFFFF} << 8, table);
  const int64_t one = 1 << 23, half = 1 << 7;
  return static_cast<int16_t>((position >= 0 ? value - one + half : one - value + half - 1) >> 8);
}

}  // namespace permafrost

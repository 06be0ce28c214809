// Implements names and sizes of the element types, and the conversions of 16-bit floats.
#include "graph/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/nearest.h"

namespace permafrost {
namespace {

struct Row {
  DType dtype;
  absl::string_view text;
  size_t size;
};

template <typename T>
constexpr size_t ElementSize() {
  return std::is_same_v<T, OpaqueElement> ? 0 : sizeof(T);
}

constexpr Row kRows[] = {
#define DTYPE(enumerator, number, text, type, field) {DType::enumerator, text, ElementSize<type>()},
#include "graph/dtypes.def"
#undef DTYPE
};

const Row* FindRow(DType dtype) {
  // Type numbers start at 1 and have no gaps. A file may hold any int32, the smallest too.
  const uint32_t index = static_cast<uint32_t>(dtype) - 1;
  if (index >= std::size(kRows)) return nullptr;
  return &kRows[index];
}

}  // namespace

size_t SizeOf(DType dtype) {
  const Row* row = FindRow(dtype);
  return row == nullptr ? 0 : row->size;
}

std::string DTypeName(DType dtype) {
  if (const Row* row = FindRow(RemoveRef(dtype))) return absl::StrCat(row->text, IsRef(dtype) ? "_ref" : "");
  return absl::StrCat("dtype(", static_cast<int32_t>(dtype), ")");
}

absl::StatusOr<DType> ParseDType(absl::string_view text) {
  absl::string_view base = text;
  const bool is_ref = absl::ConsumeSuffix(&base, "_ref");
  if (base == "float32") base = "float";
  if (base == "float64") base = "double";
  if (base == "float16") base = "half";
  for (const Row& row : kRows) {
    if (row.text == base) {
      return static_cast<DType>(static_cast<int32_t>(row.dtype) + (is_ref ? kRefOffset : 0));
    }
  }
  std::vector<absl::string_view> names;
  for (const Row& row : kRows) names.push_back(row.text);
  return absl::InvalidArgumentError(absl::StrCat("unknown type '", text, "'", DidYouMean(text, names)));
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf || dtype == DType::kBFloat16;
}

float ToFloat(BFloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

BFloat16 ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};  // 0x40: the quiet bit.
  const uint32_t rounding = 0x7fff + ((bits >> 16) & 1);                       // Ties go to the even mantissa.
  return {static_cast<uint16_t>((bits + rounding) >> 16)};
}

// IEEE 754 binary16: 1 sign bit, 5 exponent bits with bias 15, 10 mantissa bits.
float ToFloat(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1f;
  const uint32_t mantissa = value.bits & 0x3ff;
  if (exponent == 0) {  // Zero or subnormal: mantissa * 2^-24 is exact in binary32.
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent - 15 + 127;
  const uint32_t bits = sign | (wide_exponent << 23) | (mantissa << 13);
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

Half ToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return {static_cast<uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x1ff))};
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return {static_cast<uint16_t>(sign | 0x7c00)};  // Rounds to infinity: 65504 + half a step.
  if (magnitude < 6.103515625e-05f) {                                        // 2^-14: below it the step is 2^-24.
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))))};
  }
  const uint32_t rounding = 0xfff + ((bits >> 13) & 1);
  const uint32_t rounded = (bits & 0x7fffffff) + rounding;
  return {static_cast<uint16_t>(sign | ((rounded >> 13) - ((127 - 15) << 10)))};
}

}  // namespace permafrost

// Writes tensors in TensorFlow's message format.
#include "runtime_check/kernels/tensor_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/dtype.h"

namespace permafrost {
namespace {

// Formats with few digits if they read back as the same number, else with enough digits for any number.
template <typename T>
std::string TextOfReal(T value) {
  constexpr int kFew = std::numeric_limits<T>::digits10;         // 6 or 15.
  constexpr int kEnough = std::numeric_limits<T>::max_digits10;  // 9 or 17.
  constexpr size_t kLongest = 32;
  if (std::isnan(value)) return "nan";
  char text[kLongest];
  std::snprintf(text, kLongest, "%.*g", kFew, static_cast<double>(value));
  const T read = std::is_same_v<T, float> ? std::strtof(text, nullptr) : static_cast<T>(std::strtod(text, nullptr));
  if (read != value) std::snprintf(text, kLongest, "%.*g", kEnough, static_cast<double>(value));
  return text;
}

std::string TextOfElement(const Value& value, int64_t i) {
  if (value.dtype == DType::kString) return absl::Utf8SafeCEscape((*value.strings)[i]);
  const auto at = [&](auto tag) { return reinterpret_cast<const decltype(tag)*>(value.data)[i]; };
  switch (value.dtype) {
    case DType::kFloat:
      return TextOfReal(at(float{}));
    case DType::kDouble:
      return TextOfReal(at(double{}));
    case DType::kHalf:
      return TextOfReal(ToFloat(at(Half{})));
    case DType::kBFloat16:
      return TextOfReal(ToFloat(at(BFloat16{})));
    case DType::kBool:
      return at(bool{}) ? "1" : "0";
    case DType::kInt8:
    case DType::kQInt8:
      return absl::StrCat(static_cast<int>(at(int8_t{})));
    case DType::kUint8:
    case DType::kQUint8:
      return absl::StrCat(static_cast<int>(at(uint8_t{})));
    case DType::kInt16:
    case DType::kQInt16:
      return absl::StrCat(at(int16_t{}));
    case DType::kUint16:
    case DType::kQUint16:
      return absl::StrCat(at(uint16_t{}));
    case DType::kInt32:
      return absl::StrCat(at(int32_t{}));
    case DType::kUint32:
      return absl::StrCat(at(uint32_t{}));
    case DType::kInt64:
      return absl::StrCat(at(int64_t{}));
    case DType::kUint64:
      return absl::StrCat(at(uint64_t{}));
    default:
      return "?";
  }
}

}  // namespace

std::string TextOfValues(const Value& value, int64_t max_elements) {
  const int64_t count = value.shape.num_elements();
  const int64_t shown = max_elements < 0 ? count : std::min(count, max_elements);
  if (count == 0) return "";
  // The number of elements in each pair of brackets, for all dimensions but the last; the innermost comes last.
  std::vector<int64_t> parts;
  int64_t size = count;
  for (int d = 0; d + 1 < value.shape.rank(); ++d) parts.push_back(size /= value.shape.dim(d));
  std::string text;
  int open = 0;
  for (int64_t i = 0; i < shown; ++i) {
    bool is_first = i == 0;
    for (const int64_t part : parts) {
      if (i % part != 0) continue;
      text += '[';
      ++open;
      is_first = true;
    }
    if (!is_first) text += ' ';
    text += TextOfElement(value, i);
    for (const int64_t part : parts) {
      if ((i + 1) % part != 0) continue;
      text += ']';
      --open;
    }
  }
  if (shown == count) return text;
  if (!parts.empty() && shown % parts.back() != 0) text += "...";
  text.append(static_cast<size_t>(open), ']');
  return text + "...";
}

}  // namespace permafrost

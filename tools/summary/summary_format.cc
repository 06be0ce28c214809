// Formats numbers and tensors as TensorFlow's summarize_graph does.
#include "tools/summary/summary_format.h"

#include <cstdlib>
#include <functional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/dtype.h"

namespace permafrost {
namespace {

constexpr int64_t kShownElements = 3;

std::string ShortestText(double value, int digits, int all_digits, bool is_float) {
  std::string text = absl::StrFormat("%.*g", digits, value);
  const bool is_exact = is_float ? std::strtof(text.c_str(), nullptr) == static_cast<float>(value)
                                 : std::strtod(text.c_str(), nullptr) == value;
  if (!is_exact && value == value) text = absl::StrFormat("%.*g", all_digits, value);
  return text;
}

std::string FloatText(float value) { return ShortestText(value, 6, 9, true); }

std::string ElementText(const Tensor& tensor, int64_t index) {
  const size_t i = static_cast<size_t>(index);
  std::string text = "?";
  if (tensor.dtype() == DType::kString) return absl::CEscape(tensor.strings()[i]);
  DispatchOn<float, double, Half, BFloat16>(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = tensor.elements<T>()[i];
    if constexpr (std::is_same_v<T, double>) {
      text = ShortestText(value, 15, 17, false);
    } else if constexpr (std::is_same_v<T, float>) {
      text = FloatText(value);
    } else {
      text = FloatText(ToFloat(value));
    }
  });
  DispatchOn<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      tensor.dtype(), [&](auto tag) { text = absl::StrCat(tensor.elements<typename decltype(tag)::type>()[i]); });
  DispatchOn<QInt8, QUint8, QInt16, QUint16, QInt32>(
      tensor.dtype(), [&](auto tag) { text = absl::StrCat(tensor.elements<typename decltype(tag)::type>()[i].value); });
  if (tensor.dtype() == DType::kBool) text = tensor.bytes()[i] != 0 ? "1" : "0";
  return text;
}

// Returns the elements, with brackets for every dimension but the first. Each started row is closed; a truncated one
// ends in "...".
std::string ValuesText(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const int64_t count = tensor.num_elements();
  if (count == 0) return "";
  const int rank = shape.rank();
  std::string text;
  int64_t shown = 0;
  for (; shown < count && shown < kShownElements; ++shown) {
    // The number of trailing dimensions that start again at this element.
    int starts = 0;
    int64_t stride = 1;
    while (starts + 1 < rank && shown % (stride * shape.dim(rank - 1 - starts)) == 0) {
      stride *= shape.dim(rank - 1 - starts);
      ++starts;
    }
    if (shown > 0) text += starts == 0 ? std::string(" ") : std::string(static_cast<size_t>(starts), ']');
    text += std::string(static_cast<size_t>(shown == 0 ? std::max(rank - 1, 0) : starts), '[');
    text += ElementText(tensor, shown);
  }
  if (rank > 1) {
    if (shown % shape.dim(rank - 1) != 0) text += "...";
    text += std::string(static_cast<size_t>(rank - 1), ']');
  }
  if (count > shown) text += "...";
  return text;
}

}  // namespace

std::string HumanCount(int64_t value) {
  if (value < 1000) return absl::StrCat(value);
  if (value >= 1000000000000000) return absl::StrFormat("%0.3G", static_cast<double>(value));
  const char* suffix = "k";
  for (const char* next : {"M", "B", "T"}) {
    if (value < 1000000) break;
    value /= 1000;
    suffix = next;
  }
  return absl::StrFormat("%.2f%s", static_cast<double>(value) / 1000, suffix);
}

std::string TensorText(const Tensor& tensor) {
  return absl::StrCat("Tensor<type: ", DTypeName(tensor.dtype()), " shape: ", tensor.shape().ToString(),
                      " values: ", ValuesText(tensor), ">");
}

}  // namespace permafrost

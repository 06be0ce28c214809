// Element types: numbers, names, sizes, and dispatch from a type to its C++ type.
#ifndef PERMAFROST_GRAPH_DTYPE_H_
#define PERMAFROST_GRAPH_DTYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/selection.h"

namespace permafrost {

// 16-bit floats are stored as bits and converted when used.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// Elements of quantised types. Distinct C++ types prevent kernels from mixing quantised codes and integers.
template <typename Code, int kTag>
struct QuantizedElement {
  Code value;
};
using QInt8 = QuantizedElement<int8_t, 11>;
using QUint8 = QuantizedElement<uint8_t, 12>;
using QInt32 = QuantizedElement<int32_t, 13>;
using QInt16 = QuantizedElement<int16_t, 15>;
using QUint16 = QuantizedElement<uint16_t, 16>;

// Represents an element of a type without a fixed-size in-memory form (string, resource, variant).
struct OpaqueElement {};

// The numbers are those of TensorFlow's DataType. A number outside the table is preserved and has no name or size.
// RemoveRef maps a reference type (number + 100) to its base type.
enum class DType : int32_t {
  kInvalid = 0,
#define DTYPE(enumerator, number, text, type, field) enumerator = number,
#include "graph/dtypes.def"
#undef DTYPE
};

inline constexpr int32_t kRefOffset = 100;
inline bool IsRef(DType dtype) { return static_cast<int32_t>(dtype) > kRefOffset; }
inline DType RemoveRef(DType dtype) {
  return IsRef(dtype) ? static_cast<DType>(static_cast<int32_t>(dtype) - kRefOffset) : dtype;
}

// Returns the size of one element in bytes; 0 for string, resource, variant and unknown numbers.
size_t SizeOf(DType dtype);

// Returns "float", "qint8", "int32_ref", or "dtype(77)" for a number outside the table.
std::string DTypeName(DType dtype);

// Parses a name as returned by DTypeName, and also float32, float64 and float16, each optionally with "_ref". Returns
// InvalidArgument, with the nearest names, for any other text.
absl::StatusOr<DType> ParseDType(absl::string_view text);

// True for float, double, half and bfloat16.
bool IsFloating(DType dtype);

// DTypeOf<float>::value is DType::kFloat.
namespace internal {
// OpaqueElement stands for three dtypes, so this is a chain of conditions instead of template specialisations.
template <typename T>
constexpr DType FindDType() {
  static_assert(!std::is_same_v<T, OpaqueElement>, "an opaque element does not determine a dtype");
#define DTYPE(enumerator, number, text, type, field) \
  if constexpr (std::is_same_v<T, type>)             \
    return DType::enumerator;                        \
  else
#include "graph/dtypes.def"
#undef DTYPE
  return DType::kInvalid;
}
}  // namespace internal
template <typename T>
struct DTypeOf {
  static constexpr DType value = internal::FindDType<T>();
  static_assert(value != DType::kInvalid, "not the C++ type of any dtype");
};

template <typename T>
struct TypeTag {
  using type = T;
};

namespace internal {
template <typename T, bool kIsCompiled, typename F>
bool CallFor(DType dtype, F& f) {
  if constexpr (kIsCompiled) {
    if (DTypeOf<T>::value == dtype) {
      f(TypeTag<T>());
      return true;
    }
  }
  return false;
}
}  // namespace internal

// True if the current source file must support this type: always, except in a selective build.
constexpr bool IsSelected(DType dtype, selection::TypeSet types = selection::kTypesHere) {
  return (types & selection::SetOf(static_cast<int>(dtype))) != 0;
}

// Calls f(TypeTag<T>()) for the C++ type T of `dtype` and returns true if T is one of Types; otherwise returns false.
// This is the only switch over dtypes in the project:
//   bool known = DispatchOn<float, int32_t>(dtype, [&](auto tag) { using T = typename decltype(tag)::type; ... });
// In a selective build f is compiled only for selected types, and dtype must be one of them.
template <typename... Types, typename F>
bool DispatchOn(DType dtype, F&& f) {
  return (internal::CallFor<Types, IsSelected(DTypeOf<Types>::value)>(dtype, f) || ...);
}

// Conversions of 16-bit floats. ToHalf and ToBFloat16 round to nearest even; NaN stays NaN.
float ToFloat(Half value);
float ToFloat(BFloat16 value);
Half ToHalf(float value);
BFloat16 ToBFloat16(float value);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_DTYPE_H_

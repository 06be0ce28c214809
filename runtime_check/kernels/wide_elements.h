// The types in which elements are compared, added and accumulated: 16-bit floats as float, integers without overflow.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_WIDE_ELEMENTS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_WIDE_ELEMENTS_H_

#include <complex>
#include <cstdint>
#include <type_traits>

#include "graph/base/multiversion.h"
#include "graph/dtype.h"

namespace permafrost {

template <typename T>
inline constexpr bool kIs16BitFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Signed integers as unsigned ones, which wrap around as TensorFlow's do; signed overflow is undefined in C++.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, TypeTag<T>>::type;

// The type of long sums and products of T: double for all floats, and 64-bit integers, which wrap around. The low bits
// of the result do not depend on the high ones.
template <typename T>
using Total = std::conditional_t<
    std::is_integral_v<T>, uint64_t,
    std::conditional_t<std::is_floating_point_v<T> || kIs16BitFloat<T>, double, std::complex<double>>>;

// Returns the value by which elements are compared.
template <typename T>
PF_INLINE inline auto Comparable(T x) {
  if constexpr (kIs16BitFloat<T>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

// Returns the value for short sums and products. Integers become unsigned with at least 32 bits, so that they wrap
// around.
template <typename T>
PF_INLINE inline auto Widen(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::conditional_t<(sizeof(T) > sizeof(uint32_t)), uint64_t, uint32_t>>(x);
  } else {
    return Comparable(x);
  }
}

// Rounds a wide value to T: floats to the nearest, integers to their low bits.
template <typename T, typename Wide>
PF_INLINE inline T Narrow(Wide x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_WIDE_ELEMENTS_H_

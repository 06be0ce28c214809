// Elements as the types that they are compared and added in: 16-bit floats as float; sums of integers wrap round.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_WIDE_ELEMENTS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_WIDE_ELEMENTS_H_

#include <cstdint>
#include <type_traits>

#include "graph/base/multiversion.h"
#include "graph/dtype.h"

namespace permafrost {

template <typename T>
inline constexpr bool kIs16BitFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// What elements are compared by.
template <typename T>
PF_INLINE inline auto Comparable(T x) {
  if constexpr (kIs16BitFloat<T>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

// What sums and products are taken of.
template <typename T>
auto Widen(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(x);
  } else {
    return Comparable(x);
  }
}

// And back; floats are rounded.
template <typename T, typename Wide>
T Narrow(Wide x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(x);
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_WIDE_ELEMENTS_H_

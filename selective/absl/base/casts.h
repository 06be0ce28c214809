// Replacement for Abseil's bit_cast.
#ifndef PERMAFROST_SELECTIVE_ABSL_BASE_CASTS_H_
#define PERMAFROST_SELECTIVE_ABSL_BASE_CASTS_H_

#include <cstring>
#include <type_traits>

namespace absl {
inline namespace selective {

template <typename To, typename From>
To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_BASE_CASTS_H_

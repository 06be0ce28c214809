// Replacement for Abseil's optional: that of the standard library.
#ifndef PERMAFROST_SELECTIVE_ABSL_TYPES_OPTIONAL_H_
#define PERMAFROST_SELECTIVE_ABSL_TYPES_OPTIONAL_H_

#include <optional>

namespace absl {
inline namespace selective {
using std::nullopt;
using std::optional;
}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_TYPES_OPTIONAL_H_

// Replacement for Abseil's string_view: that of the standard library. See selective/README.md for the purpose of this
// folder.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STRING_VIEW_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STRING_VIEW_H_

#include <string_view>

namespace absl {
inline namespace selective {
using std::string_view;
}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STRING_VIEW_H_

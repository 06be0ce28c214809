// As Abseil's: the standard's own. See selective/README.md for what this folder is.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STRING_VIEW_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STRING_VIEW_H_

#include <string_view>

namespace absl {
inline namespace selective {
using std::string_view;
}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STRING_VIEW_H_

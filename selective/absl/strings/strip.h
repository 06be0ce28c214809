// Replacement for Abseil's functions that remove prefixes, suffixes and white space.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STRIP_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STRIP_H_

#include "absl/strings/match.h"

namespace absl {
inline namespace selective {

inline bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (!StartsWith(*text, prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}
inline bool ConsumeSuffix(std::string_view* text, std::string_view suffix) {
  if (!EndsWith(*text, suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STRIP_H_

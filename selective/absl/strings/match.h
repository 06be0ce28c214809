// Replacement for Abseil's StartsWith, EndsWith and StrContains.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_MATCH_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_MATCH_H_

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

inline bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
inline bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}
inline bool StrContains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
inline bool StrContains(std::string_view text, char part) { return text.find(part) != text.npos; }

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_MATCH_H_

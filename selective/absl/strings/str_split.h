// Replacement for Abseil's StrSplit, for a separator of one character and views of the pieces.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_SPLIT_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_SPLIT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

struct MaxSplits {
  MaxSplits(char separator, int most) : separator(separator), most(most) {}
  char separator;
  int most;
};
struct SkipEmpty {};

class Pieces : public std::vector<std::string_view> {
 public:
  Pieces(std::string_view text, char separator, int most, bool skip_empty);
  operator std::pair<std::string_view, std::string_view>() const {  // NOLINT: implicit, as in Abseil.
    return {empty() ? std::string_view() : front(), size() < 2 ? std::string_view() : (*this)[1]};
  }
};

inline Pieces StrSplit(std::string_view text, char separator) { return {text, separator, -1, false}; }
inline Pieces StrSplit(std::string_view text, char separator, SkipEmpty) { return {text, separator, -1, true}; }
inline Pieces StrSplit(std::string_view text, MaxSplits split) { return {text, split.separator, split.most, false}; }

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_SPLIT_H_

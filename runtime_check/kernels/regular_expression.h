// Regular expressions in the syntax of RE2, which TensorFlow's string ops use, over UTF-8 text.
//
// Matching takes time proportional to the text times the size of the pattern, whatever both are: all ways to match are
// followed at once (Thompson, 1968; Pike's captures), so no pattern makes it exponential. Of several matches at one
// place the one that Perl would find first counts, as in RE2.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_REGULAR_EXPRESSION_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_REGULAR_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// A value type, immutable once made: threads may share one.
class RegularExpression {
 public:
  // InvalidArgument for a pattern that is not well-formed, ResourceExhausted for one that is too large or too deep,
  // Unimplemented for scripts (\p{Greek}) and for letters beyond ASCII in a part that ignores case.
  static absl::StatusOr<RegularExpression> Compile(absl::string_view pattern);

  bool MatchesAll(absl::string_view text) const;

  // The text with the first match, or with all, replaced by `rewrite`, in which \1 to \9 stand for groups, \0 for the
  // match and \\ for a backslash.
  std::string Replace(absl::string_view text, absl::string_view rewrite, bool all) const;
  // InvalidArgument when `rewrite` names a group that the pattern lacks, or has another escape.
  absl::Status CheckRewrite(absl::string_view rewrite) const;

  int num_groups() const { return num_groups_; }

 private:
  friend class RegularExpressionCompiler;
  friend class RegularExpressionMatcher;

  // A range of code points, both ends included.
  struct Range {
    uint32_t first, last;
  };
  enum class Code : uint8_t { kRanges, kSplit, kJump, kSave, kAssert, kMatch };
  enum class Place : uint8_t { kTextStart, kTextEnd, kLineStart, kLineEnd, kWordEdge, kNoWordEdge };
  struct Instruction {
    Code code;
    Place place = Place::kTextStart;  // Of kAssert.
    int32_t first = 0;                // Of kRanges the first range; where kSplit and kJump go; what kSave saves.
    int32_t second = 0;               // Of kRanges the end of the ranges; where kSplit goes if the first way fails.
  };

  std::vector<Instruction> program_;
  std::vector<Range> ranges_;
  int num_groups_ = 0;
};

// The code point at text[at] and how many bytes it takes. Of bytes that are not UTF-8: -1 and 1. REQUIRES: at <
// text.size().
std::pair<int32_t, size_t> CodePointAt(absl::string_view text, size_t at);
// Appends the code point in UTF-8. REQUIRES: at most 0x10ffff.
void AppendCodePoint(uint32_t code_point, std::string* text);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_REGULAR_EXPRESSION_H_

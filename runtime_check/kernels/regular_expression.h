// Regular expressions in the syntax of RE2, which TensorFlow's string ops use, over UTF-8 text.
//
// Matching takes time proportional to the product of text and pattern size: all possible matches are followed at once
// (Thompson, 1968; Pike's captures), so no pattern takes exponential time. Among several matches at one position, the
// one that Perl would find first is chosen, as in RE2.
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

// A compiled regular expression. Immutable, so threads may share one; copyable.
class RegularExpression {
 public:
  // Compiles a pattern. Returns InvalidArgument for a pattern that is not well-formed, ResourceExhausted for one that
  // is too large or nested too deeply, and Unimplemented for scripts (\p{Greek}) and for non-ASCII letters in a part
  // that ignores case.
  static absl::StatusOr<RegularExpression> Compile(absl::string_view pattern);

  bool MatchesAll(absl::string_view text) const;

  // Returns the text with the first match, or all matches, replaced by `rewrite`. In `rewrite`, \1 to \9 are groups, \0
  // is the match and \\ is a backslash.
  std::string Replace(absl::string_view text, absl::string_view rewrite, bool all) const;
  // Returns InvalidArgument if `rewrite` refers to a group that the pattern lacks, or has another escape.
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
    Place place = Place::kTextStart;  // Only for kAssert.
    int32_t first = 0;                // First range of kRanges; target of kSplit and kJump; index that kSave saves.
    int32_t second = 0;               // End of the ranges of kRanges; second target of kSplit.
  };

  std::vector<Instruction> program_;
  std::vector<Range> ranges_;
  int num_groups_ = 0;
};

// Returns the code point at text[at] and its number of bytes; -1 and 1 for bytes that are not UTF-8. REQUIRES: at <
// text.size().
std::pair<int32_t, size_t> CodePointAt(absl::string_view text, size_t at);
// Appends the code point in UTF-8. REQUIRES: at most 0x10ffff.
void AppendCodePoint(uint32_t code_point, std::string* text);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_REGULAR_EXPRESSION_H_

// Parses lists with ranges, and masks.
#include "tools/model/processor_list.h"

#include <sched.h>

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace permafrost {
namespace {

absl::Status BadProcessors(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("found '", text, "', expected processors such as '0-2,5' or a mask such as '0x27'"));
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseProcessors(absl::string_view text) {
  std::vector<int> processors;
  absl::string_view digits = text;
  if (absl::ConsumePrefix(&digits, "0x")) {
    uint64_t mask;
    if (!absl::SimpleHexAtoi(digits, &mask) || mask == 0) return BadProcessors(text);
    for (int i = 0; i < 64; ++i) {
      if (((mask >> i) & 1) != 0) processors.push_back(i);
    }
    return processors;
  }
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(piece, '-');
    int first, last;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first || last >= CPU_SETSIZE) {
      return BadProcessors(text);
    }
    for (int i = first; i <= last; ++i) processors.push_back(i);
  }
  return processors;
}

}  // namespace permafrost

// Replacement for Abseil's StrJoin: concatenates the elements of a range with a separator.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_JOIN_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_JOIN_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace absl {
inline namespace selective {

template <typename Iterator, typename Format>
std::string StrJoin(Iterator begin, Iterator end, std::string_view separator, Format&& format) {
  std::string joined;
  for (Iterator i = begin; i != end; ++i) {
    if (i != begin) joined.append(separator);
    format(&joined, *i);
  }
  return joined;
}
template <typename Range, typename Format>
std::string StrJoin(const Range& range, std::string_view separator, Format&& format) {
  return StrJoin(range.begin(), range.end(), separator, format);
}
template <typename Iterator, typename = decltype(*std::declval<Iterator>())>
std::string StrJoin(Iterator begin, Iterator end, std::string_view separator) {
  return StrJoin(begin, end, separator, [](std::string* out, const auto& element) { StrAppend(out, element); });
}
template <typename Range>
std::string StrJoin(const Range& range, std::string_view separator) {
  return StrJoin(range, separator, [](std::string* out, const auto& element) { StrAppend(out, element); });
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_STR_JOIN_H_

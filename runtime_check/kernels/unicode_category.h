// The general category of each code point, as a table of where each category begins.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_UNICODE_CATEGORY_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_UNICODE_CATEGORY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// One entry for each run of code points of one category, ascending: the first code point, shifted left by
// kUnicodeCategoryBits, and the number of the category.
constexpr int kUnicodeCategoryBits = 5;
absl::Span<const uint32_t> UnicodeCategoryStarts();
// The names of the categories by number: "Lu", "Ll" ...; "Cn" for code points that are not assigned.
absl::Span<const absl::string_view> UnicodeCategoryNames();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_UNICODE_CATEGORY_H_

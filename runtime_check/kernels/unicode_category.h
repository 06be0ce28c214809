// The general categories of Unicode code points, as a table of the starts of runs.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_UNICODE_CATEGORY_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_UNICODE_CATEGORY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// Returns one entry per run of code points of one category, in ascending order: the first code point, shifted left by
// kUnicodeCategoryBits, and the number of the category.
constexpr int kUnicodeCategoryBits = 5;
absl::Span<const uint32_t> UnicodeCategoryStarts();
// Returns the names of the categories by number: "Lu", "Ll" ...; "Cn" for unassigned code points.
absl::Span<const absl::string_view> UnicodeCategoryNames();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_UNICODE_CATEGORY_H_

// Shapes and numbers of segments: rows of input 0 that are grouped by the numbers of input 1.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_SEGMENT_ROWS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_SEGMENT_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "graph/shape.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// Returns `shape` with its first `count` dimensions replaced by `first`.
Shape WithFirst(int64_t first, const Shape& shape, int count);

// Returns InvalidArgument unless input 0 starts with the dimensions of input 1.
absl::Status RequirePrefix(PrepareContext* context);

// Prepare functions of segments in any order, whose number is input 2, and of segments with ascending numbers.
absl::Status PrepareUnsortedSegments(PrepareContext* context);
absl::Status PrepareSortedSegments(PrepareContext* context);

// Returns the number of segments of `count` rows. Returns InvalidArgument unless the numbers ascend from 0 on.
template <typename Index>
absl::StatusOr<int64_t> CountSortedSegments(const Index* numbers, int64_t count) {
  int64_t last = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (numbers[i] < 0 || numbers[i] < last || numbers[i] == INT64_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("'segment_ids' has ", numbers[i], " at element ", i, ", expected ascending numbers from 0 on"));
    }
    last = numbers[i];
  }
  return last + 1;
}

// Allocates output 0 with a row for each of `count` segments.
absl::Status AllocateSegments(ComputeContext* context, int64_t count);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_SEGMENT_ROWS_H_

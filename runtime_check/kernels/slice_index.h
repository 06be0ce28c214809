// Rows of indices that address slices of a tensor by its leading dimensions, shared by GatherNd and the scatter ops.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_SLICE_INDEX_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_SLICE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/shape.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// The leading dimensions that a row of indices addresses, and the remaining slice.
struct SliceIndex : KernelState {
  absl::InlinedVector<int64_t, 6> dims;
  int64_t num_rows = 0;  // Number of rows of indices.
  int64_t slice_elements = 0;
  bool skips_bad_rows = false;  // Attr bad_indices_policy is IGNORE; otherwise they are an error.

  // Returns the number of the slice that the row addresses; -1 if it is out of bounds.
  template <typename Index>
  int64_t SliceOf(const Index* row) const {
    int64_t slice = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (row[d] < 0 || row[d] >= dims[d]) return -1;
      slice = slice * dims[d] + row[d];
    }
    return slice;
  }
};

// Reads the index for indices of shape [..., depth] into a tensor of shape `target`. Returns InvalidArgument if depth
// exceeds the rank, or for an unknown bad_indices_policy.
absl::StatusOr<std::unique_ptr<SliceIndex>> ReadSliceIndex(const Node& node, const Shape& indices, const Shape& target);

// Returns the shape of the result with one slice of `target` per row of `indices`.
Shape ShapeOfSlices(const SliceIndex& index, const Shape& indices, const Shape& target);

absl::Status BadRow(int64_t row);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_SLICE_INDEX_H_

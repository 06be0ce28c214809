// Copies of blocks of elements between strided layouts: the engine of the kernels that only move elements.
//
// Elements have 1, 2, 4, 8 or 16 bytes, of any type. Transpose, slice, reverse, tile, concatenate, pad and the
// space/depth ops are all such copies, with strides that permute, skip, run backwards or repeat.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_STRIDED_COPY_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

class StridedCopy {
 public:
  // Strides in elements; a source stride may be negative, or 0 to repeat.
  struct Dim {
    int64_t size;
    int64_t from;
    int64_t to;
  };

  StridedCopy() = default;
  // Takes the dimensions, outermost first. `element_size` is 1, 2, 4, 8 or 16.
  StridedCopy(absl::Span<const Dim> dims, size_t element_size);

  // Copies the block. `from` and `to` point to the first elements and must not overlap.
  void Run(const char* from, char* to, ThreadPool* threads) const;

  int64_t num_elements() const { return num_elements_; }

 private:
  // Calls body(from offset, to offset) for the elements [begin, end) of the outer dimensions.
  template <typename Body>
  void ForEachOuter(int num_outer, int64_t begin, int64_t end, Body body) const;
  void CopyRows(const char* from, char* to, ThreadPool* threads) const;
  void CopyTiles(const char* from, char* to, ThreadPool* threads) const;

  absl::InlinedVector<Dim, 6>
      dims_;  // Neighbouring dimensions with compatible strides are merged. Never empty after construction.
  size_t element_size_ = 1;
  int64_t num_elements_ = 0;
  bool transposes_ = false;  // The last two dimensions are contiguous on one side each.
};

// Returns the strides of a row-major tensor of that shape. They are meaningless for a tensor without elements.
absl::InlinedVector<int64_t, 6> RowMajorStrides(absl::Span<const int64_t> dims);

// Returns the copy that permutes a row-major tensor of shape `from`: dimension d of the result is dimension order[d].
absl::InlinedVector<StridedCopy::Dim, 6> PermutedDims(absl::Span<const int64_t> from, absl::Span<const int> order);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_STRIDED_COPY_H_

// Kernels that only move elements: Prepare lists the copies, Compute runs them.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_COPY_LIST_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_COPY_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/shape.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/strided_copy.h"

namespace permafrost {

// Copies from inputs to outputs, in order.
class CopyList : public KernelState {
 public:
  // In place of the number of an input or output.
  static constexpr int kScratch = -1;
  static constexpr int kZero = -2;  // Only to copy from: one element of zeros, for strides of 0.

  explicit CopyList(size_t element_size) : element_size_(element_size) {}

  // Copies from element `from_offset` of input `from` to element `to_offset` of output `to`. Nothing for no elements.
  void Add(int from, int64_t from_offset, int to, int64_t to_offset, absl::Span<const StridedCopy::Dim> dims);

  // Writes a block of shape `size` into the middle of a tensor of shape `target` at `before`, and the element that
  // `border` names, or that input's first, into what surrounds it.
  void AddPadded(int from, int to, int border, absl::Span<const int64_t> size, absl::Span<const int64_t> before,
                 absl::Span<const int64_t> target);

  void Run(ComputeContext* context) const;

 private:
  struct Piece {
    int from;
    int64_t from_bytes;
    int to;
    int64_t to_bytes;
    StridedCopy copy;
  };

  size_t element_size_;
  std::vector<Piece> pieces_;
};

// A Compute function for kernels whose state is a CopyList.
absl::Status ComputeCopies(ComputeContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_COPY_LIST_H_

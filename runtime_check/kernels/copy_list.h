// Kernels that only move elements: Prepare creates a list of copies, Compute runs it.
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

// A list of copies from inputs to outputs, run in order.
class CopyList : public KernelState {
 public:
  // Special numbers that replace the number of an input or output.
  static constexpr int kScratch = -1;
  static constexpr int kZero = -2;  // Source only: one element of zeros, for strides of 0.

  explicit CopyList(size_t element_size) : element_size_(element_size) {}

  // Adds a copy from element `from_offset` of input `from` to element `to_offset` of output `to`. Does nothing for an
  // empty block.
  void Add(int from, int64_t from_offset, int to, int64_t to_offset, absl::Span<const StridedCopy::Dim> dims);

  // Adds a copy of a block of shape `size` into a tensor of shape `target` at position `before`, and fills the rest of
  // the tensor with the element that `border` names: the first element of an input, or kZero.
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

// The Compute function of kernels whose state is a CopyList.
absl::Status ComputeCopies(ComputeContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_COPY_LIST_H_

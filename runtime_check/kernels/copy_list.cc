// Implements lists of copies for kernels that only move elements.
#include "runtime_check/kernels/copy_list.h"

#include <utility>

namespace permafrost {

void CopyList::Add(int from, int64_t from_offset, int to, int64_t to_offset, absl::Span<const StridedCopy::Dim> dims) {
  StridedCopy copy(dims, element_size_);
  if (copy.num_elements() == 0) return;
  const int64_t size = static_cast<int64_t>(element_size_);
  pieces_.push_back({from, from_offset * size, to, to_offset * size, std::move(copy)});
}

void CopyList::AddPadded(int from, int to, int border, absl::Span<const int64_t> size, absl::Span<const int64_t> before,
                         absl::Span<const int64_t> target) {
  const int rank = static_cast<int>(size.size());
  const absl::InlinedVector<int64_t, 6> from_strides = RowMajorStrides(size);
  const absl::InlinedVector<int64_t, 6> to_strides = RowMajorStrides(target);
  absl::InlinedVector<StridedCopy::Dim, 6> middle(rank);
  int64_t middle_offset = 0;
  for (int d = 0; d < rank; ++d) {
    middle[d] = {size[d], from_strides[d], to_strides[d]};
    middle_offset += before[d] * to_strides[d];
  }
  Add(from, 0, to, middle_offset, middle);
  // Adds the parts before and after the block along each dimension. A part is restricted to the block in outer
  // dimensions and complete in inner dimensions.
  absl::InlinedVector<StridedCopy::Dim, 6> part(rank);
  for (int d = 0; d < rank; ++d) part[d] = {target[d], 0, to_strides[d]};
  int64_t offset = 0;
  for (int d = 0; d < rank; ++d) {
    part[d].size = before[d];
    Add(border, 0, to, offset, part);
    part[d].size = target[d] - before[d] - size[d];
    Add(border, 0, to, offset + (before[d] + size[d]) * to_strides[d], part);
    part[d].size = size[d];
    offset += before[d] * to_strides[d];
  }
}

void CopyList::Run(ComputeContext* context) const {
  alignas(16) static constexpr char kZeroElement[16] = {};
  for (const Piece& piece : pieces_) {
    const char* from = piece.from == kScratch ? context->scratch()
                       : piece.from == kZero  ? kZeroElement
                                              : context->input_bytes(piece.from);
    char* to = piece.to == kScratch ? context->scratch() : context->output_bytes(piece.to);
    piece.copy.Run(from + piece.from_bytes, to + piece.to_bytes, &context->threads());
  }
}

absl::Status ComputeCopies(ComputeContext* context) {
  context->state<CopyList>().Run(context);
  return absl::OkStatus();
}

}  // namespace permafrost

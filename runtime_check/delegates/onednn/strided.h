// Strided views of row-major tensors, and loops over them.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STRIDED_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STRIDED_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/shape.h"

namespace permafrost {
namespace onednn {

// Elements of a tensor in another order: the element with index (i, j, ...) is at offset + i * strides[0] + j *
// strides[1] + ... of the tensor, in elements.
struct StridedView {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

std::vector<int64_t> RowMajorStrides(const Shape& shape);

// Returns the strides with which an operand of shape `from` is read as one of shape `to`: 0 in broadcast dimensions.
// REQUIRES: `from` can be broadcast to `to`.
std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to);

// Returns the view of the input of `inner` that reads the same elements as the view `outer`, of shape `shape`, of its
// result, which has the shape `middle`. Returns nothing if there is none. A Reshape between the two views is allowed,
// since `outer` describes positions in memory.
std::optional<StridedView> ComposeViews(const StridedView& outer, const Shape& shape, const StridedView& inner,
                                        const Shape& middle);

inline constexpr size_t kMostOperands = 4;
using OperandSteps = std::array<int64_t, kMostOperands>;

// Loops over all elements of a shape in row-major order, with positions in several operands. Dimensions of size 1 are
// omitted, and neighbours are joined where all operands allow it, so that the innermost loop is long.
class StridedLoops {
 public:
  StridedLoops() = default;
  // `strides`: for each operand, one stride per dimension.
  StridedLoops(const Shape& shape, absl::Span<const std::vector<int64_t>> strides);

  // The innermost loop: its length, and the step of each operand.
  int64_t length() const { return length_; }
  int64_t step(size_t operand) const { return steps_[operand]; }
  // Number of innermost loops.
  int64_t rows() const { return rows_; }

  // Calls f(positions) for the rows [begin, end), with the position of the first element of the row in each operand.
  template <typename F>
  void ForRows(int64_t begin, int64_t end, F f) const {
    absl::InlinedVector<int64_t, 8> index(outer_.size(), 0);
    OperandSteps at = {};
    int64_t rest = begin;
    for (size_t d = outer_.size(); d-- > 0;) {
      index[d] = rest % outer_[d].size;
      rest /= outer_[d].size;
      for (size_t k = 0; k < kMostOperands; ++k) at[k] += index[d] * outer_[d].steps[k];
    }
    for (int64_t row = begin; row < end; ++row) {
      f(at);
      for (size_t d = outer_.size(); d-- > 0;) {
        for (size_t k = 0; k < kMostOperands; ++k) at[k] += outer_[d].steps[k];
        if (++index[d] < outer_[d].size) break;
        index[d] = 0;
        for (size_t k = 0; k < kMostOperands; ++k) at[k] -= outer_[d].size * outer_[d].steps[k];
      }
    }
  }

 private:
  struct Dimension {
    int64_t size;
    OperandSteps steps;
  };

  std::vector<Dimension> outer_;
  int64_t length_ = 1, rows_ = 1;
  OperandSteps steps_ = {};
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STRIDED_H_

// Iteration over the elements of a broadcast operation, in as few and as long rows as the shapes allow.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_BROADCAST_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_BROADCAST_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/shape.h"

namespace permafrost {

// A broadcast of one to three inputs. Neighbouring dimensions with compatible strides are merged; a row is the
// innermost dimension that remains.
class Broadcast {
 public:
  static constexpr int kMaxInputs = 3;

  // Visits the output's elements in order.
  // REQUIRES: each input has a shape that broadcasts to `output`, as BroadcastShapes(all inputs) checks.
  Broadcast(absl::Span<const Shape> inputs, const Shape& output);
  Broadcast() : Broadcast({}, Shape()) {}

  int64_t num_elements() const { return num_elements_; }
  int64_t row_size() const { return dims_.back().size; }
  // Returns true if the input stays at one element along a row; otherwise it advances with the output.
  bool IsScalarInRow(int input) const { return dims_.back().stride[input] == 0; }
  // Returns true if the input is a single row that is repeated, and every other input has all elements of the output.
  bool IsRepeatedRow(int input) const;

  // Visits the output's elements [begin, end). Calls row(offsets, output_offset, n) for n elements of a row, whose
  // first element is at offsets[i] in input i. All offsets are counted in elements.
  template <typename RowFunction>
  void ForEachRow(int64_t begin, int64_t end, RowFunction row) const;

 private:
  struct Dim {
    int64_t size;
    int64_t stride[kMaxInputs];  // In elements.
  };

  absl::InlinedVector<Dim, 4> dims_;  // Outermost first; never empty.
  int num_inputs_;
  int64_t num_elements_;
};

template <typename RowFunction>
void Broadcast::ForEachRow(int64_t begin, int64_t end, RowFunction row) const {
  if (begin >= end) return;
  const int outer = static_cast<int>(dims_.size()) - 1;
  const Dim& inner = dims_.back();
  absl::InlinedVector<int64_t, 8> index(outer);
  int64_t offsets[kMaxInputs] = {};
  int64_t rest = begin / inner.size;
  int64_t column = begin % inner.size;
  for (int d = outer - 1; d >= 0; --d) {
    index[d] = rest % dims_[d].size;
    rest /= dims_[d].size;
    for (int i = 0; i < num_inputs_; ++i) offsets[i] += index[d] * dims_[d].stride[i];
  }
  while (true) {
    const int64_t n = std::min(inner.size - column, end - begin);
    int64_t starts[kMaxInputs];
    for (int i = 0; i < kMaxInputs; ++i) starts[i] = offsets[i] + column * inner.stride[i];
    row(starts, begin, n);
    begin += n;
    if (begin >= end) return;
    column = 0;
    for (int d = outer - 1; d >= 0; --d) {
      for (int i = 0; i < num_inputs_; ++i) offsets[i] += dims_[d].stride[i];
      if (++index[d] < dims_[d].size) break;
      for (int i = 0; i < num_inputs_; ++i) offsets[i] -= dims_[d].size * dims_[d].stride[i];
      index[d] = 0;
    }
  }
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_BROADCAST_H_

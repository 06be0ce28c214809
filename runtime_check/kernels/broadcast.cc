// Implements the iteration over broadcast operations.
#include "runtime_check/kernels/broadcast.h"

namespace permafrost {

Broadcast::Broadcast(absl::Span<const Shape> inputs, const Shape& output)
    : num_inputs_(static_cast<int>(inputs.size())), num_elements_(output.num_elements()) {
  if (num_elements_ == 0) {
    dims_.push_back({0, {1, 1, 1}});
    return;
  }
  int64_t next_stride[kMaxInputs] = {1, 1, 1};
  // Builds the dimensions from the innermost outwards; reversed at the end.
  for (int d = output.rank() - 1; d >= 0; --d) {
    Dim dim = {output.dim(d), {}};
    for (int i = 0; i < num_inputs_; ++i) {
      const int own = d - (output.rank() - inputs[i].rank());
      const int64_t size = own < 0 ? 1 : inputs[i].dim(own);
      dim.stride[i] = size == 1 ? 0 : next_stride[i];
      next_stride[i] *= size;
    }
    if (dim.size == 1) continue;
    bool merges = !dims_.empty();
    for (int i = 0; i < num_inputs_ && merges; ++i)
      merges = dim.stride[i] == dims_.back().stride[i] * dims_.back().size;
    if (merges) {
      dims_.back().size *= dim.size;
    } else {
      dims_.push_back(dim);
    }
  }
  if (dims_.empty()) dims_.push_back({1, {1, 1, 1}});
  std::reverse(dims_.begin(), dims_.end());
}

bool Broadcast::IsRepeatedRow(int input) const {
  if (dims_.size() != 2) return false;
  for (int i = 0; i < num_inputs_; ++i) {
    if (dims_[1].stride[i] != 1) return false;
    if (dims_[0].stride[i] != (i == input ? 0 : dims_[1].size)) return false;
  }
  return true;
}

}  // namespace permafrost

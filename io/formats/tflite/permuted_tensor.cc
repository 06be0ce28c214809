// Implements the permutation of constants.
#include "io/formats/tflite/permuted_tensor.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {

absl::StatusOr<Tensor> Permuted(const Tensor& value, absl::Span<const int32_t> order) {
  const size_t rank = order.size();
  if (value.shape().rank() != static_cast<int>(rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has shape ", value.shape().ToString(), ", expected ", rank, " dimensions"));
  }
  const size_t size = SizeOf(value.dtype());
  std::vector<int64_t> dims(rank), strides(rank, 1), steps(rank);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * value.shape().dim(static_cast<int>(i));
  for (size_t i = 0; i < rank; ++i) {
    dims[i] = value.shape().dim(order[i]);
    steps[i] = strides[static_cast<size_t>(order[i])];
  }
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(value.dtype(), Shape(dims), &out));
  const char* in = value.bytes().data();
  std::vector<int64_t> at(rank, 0);
  int64_t offset = 0;
  for (int64_t left = value.num_elements(); left > 0; --left, out += size) {
    std::memcpy(out, in + static_cast<size_t>(offset) * size, size);
    for (size_t i = rank; i-- > 0;) {
      offset += steps[i];
      if (++at[i] < dims[i]) break;
      offset -= steps[i] * dims[i];
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace permafrost

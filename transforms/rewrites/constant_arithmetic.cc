// Arithmetic on float constants.
#include "transforms/rewrites/constant_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

absl::Status CheckElement(float value) {
  if (value == 0 || std::isnormal(value)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the constants together give ", value));
}

// Returns the element strides of a tensor for each dimension of a result of `rank` dimensions; 0 in dimensions in which
// the tensor is broadcast.
std::vector<int64_t> BroadcastStrides(const Shape& shape, int rank) {
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape.dim(i) != 1) strides[rank - shape.rank() + i] = stride;
    stride *= shape.dim(i);
  }
  return strides;
}

}  // namespace

absl::StatusOr<Tensor> Combined(const Tensor& a, Operation operation, const Tensor& b) {
  const absl::StatusOr<Shape> shape = BroadcastShapes(a.shape(), b.shape());
  if (!shape.ok()) return absl::FailedPreconditionError(shape.status().message());
  const absl::StatusOr<int64_t> count = shape->CheckedNumElements();
  if (!count.ok() || *count > std::max(a.num_elements(), b.num_elements())) {
    return absl::FailedPreconditionError(absl::StrCat("the constants of shapes ", a.shape().ToString(), " and ",
                                                      b.shape().ToString(), " together would be larger than both"));
  }
  float* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(*shape, &out));
  const int rank = shape->rank();
  const std::vector<int64_t> strides_a = BroadcastStrides(a.shape(), rank),
                             strides_b = BroadcastStrides(b.shape(), rank);
  const UnalignedSpan<float> from_a = a.elements<float>(), from_b = b.elements<float>();
  std::vector<int64_t> index(rank, 0);
  int64_t at_a = 0, at_b = 0;
  for (int64_t i = 0; i < *count; ++i) {
    const float x = from_a[at_a], y = from_b[at_b];
    out[i] = operation == Operation::kSum ? x + y : x * y;
    if (operation == Operation::kProduct && out[i] == 0 && x != 0 && y != 0) {
      return absl::FailedPreconditionError("the constants together are too small");
    }
    PF_RETURN_IF_ERROR(CheckElement(out[i]));
    for (int dim = rank - 1; dim >= 0; --dim) {
      at_a += strides_a[dim];
      at_b += strides_b[dim];
      if (++index[dim] < shape->dim(dim)) break;
      at_a -= strides_a[dim] * shape->dim(dim);
      at_b -= strides_b[dim] * shape->dim(dim);
      index[dim] = 0;
    }
  }
  return result;
}

absl::StatusOr<Tensor> Mapped(const Tensor& a, absl::FunctionRef<float(float)> f) {
  float* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(a.shape(), &out));
  const UnalignedSpan<float> values = a.elements<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    out[i] = f(values[i]);
    PF_RETURN_IF_ERROR(CheckElement(out[i]));
  }
  return result;
}

}  // namespace permafrost

// Permutations of dimensions.
#include "transforms/rewrites/permutation.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "transforms/rewrites/constant_values.h"

namespace permafrost {

bool IsIdentity(const Permutation& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

Permutation Inverse(const Permutation& order) {
  Permutation inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int32_t>(i);
  return inverse;
}

Permutation Composed(const Permutation& first, const Permutation& second) {
  Permutation composed(first.size());
  for (size_t i = 0; i < composed.size(); ++i) composed[i] = first[second[i]];
  return composed;
}

std::optional<Permutation> OrderOf(const Node& transpose) {
  if (transpose.op() != ops::kTranspose || transpose.num_data_inputs() != 2) return std::nullopt;
  const std::optional<std::vector<int64_t>> integers = IntegerVectorConstant(transpose.input(1));
  if (!integers.has_value()) return std::nullopt;
  const int64_t rank = static_cast<int64_t>(integers->size());
  Permutation order;
  std::vector<bool> seen(integers->size(), false);
  for (int64_t dim : *integers) {
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank || seen[dim]) return std::nullopt;
    seen[dim] = true;
    order.push_back(static_cast<int32_t>(dim));
  }
  return order;
}

absl::StatusOr<Tensor> Transposed(const Tensor& tensor, const Permutation& order) {
  const Shape& shape = tensor.shape();
  const size_t size = SizeOf(tensor.dtype());
  const int rank = shape.rank();
  if (rank != static_cast<int>(order.size()) || size == 0) {
    return absl::InvalidArgumentError(absl::StrCat("found a ", DTypeName(tensor.dtype()), " of shape ",
                                                   shape.ToString(), ", expected ", order.size(), " dimensions"));
  }
  // Strides of the input in elements, then in the order of the result.
  std::vector<int64_t> input_strides(rank, 1), strides(rank);
  for (int i = rank - 2; i >= 0; --i) input_strides[i] = input_strides[i + 1] * shape.dim(i + 1);
  Shape result;
  for (int i = 0; i < rank; ++i) {
    result.AddDim(shape.dim(order[i]));
    strides[i] = input_strides[order[i]];
  }
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor transposed, Tensor::Allocate(tensor.dtype(), result, &out));
  const int64_t count = tensor.num_elements();
  std::vector<int64_t> index(rank, 0);
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out + i * size, tensor.bytes().data() + from * size, size);
    for (int dim = rank - 1; dim >= 0; --dim) {
      from += strides[dim];
      if (++index[dim] < result.dim(dim)) break;
      from -= strides[dim] * result.dim(dim);
      index[dim] = 0;
    }
  }
  return transposed;
}

}  // namespace permafrost

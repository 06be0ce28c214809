// Pairs of matrices of a batched product, by broadcasting of the batch dimensions.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_MATRIX_PAIRS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_MATRIX_PAIRS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/base/status.h"
#include "graph/shape.h"

namespace permafrost {

// Pairs the matrices of each product by numpy's broadcasting of the batch dimensions, and returns the broadcast batch
// shape. Returns InvalidArgument if the dimensions do not broadcast. REQUIRES: both shapes have rank 2 or more, and the
// product has elements.
inline absl::StatusOr<Shape> PairMatrices(const Shape& a, const Shape& b,
                                          std::vector<std::pair<int64_t, int64_t>>* products) {
  const Shape batch_a(a.dims().subspan(0, a.rank() - 2)), batch_b(b.dims().subspan(0, b.rank() - 2));
  PF_ASSIGN_OR_RETURN(Shape batch, BroadcastShapes(batch_a, batch_b));
  PF_ASSIGN_OR_RETURN(const int64_t count, batch.CheckedNumElements());
  const auto number = [&](const Shape& own, int64_t index) {
    int64_t result = 0, step = 1;
    for (int i = batch.rank() - 1, j = own.rank() - 1; j >= 0; --i, --j) {
      if (own.dim(j) != 1) result += index % batch.dim(i) * step;
      index /= batch.dim(i);
      step *= own.dim(j);
    }
    return result;
  };
  products->reserve(count);
  for (int64_t i = 0; i < count; ++i) products->emplace_back(number(batch_a, i), number(batch_b, i));
  return batch;
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_MATRIX_PAIRS_H_

// Products of two tensors that sum over shared dimensions (MatMul, BatchMatMul, Einsum), as batches of strided matrix
// products.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_CONTRACTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_CONTRACTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shape.h"
#include "runtime_check/delegates/onednn/strided.h"

namespace permafrost {
namespace onednn {

// A contraction: result[...] = sum of left[...] * right[...] over the labels that the result does not have.
struct Contraction {
  // A dimension of a tensor. Dimensions of size 1 are omitted.
  struct Dimension {
    int label;
    int64_t size, stride;
  };
  struct Operand {
    std::vector<Dimension> dimensions;
    int64_t offset = 0;
  };
  std::array<Operand, 2> inputs;
  Operand result;
};

// Reads a term of labels for each operand. Returns Unimplemented for an equation that is no product of two tensors.
absl::StatusOr<Contraction> EinsumContraction(const std::string& equation, const Shape& left, const Shape& right,
                                              const Shape& result);

// Batches of matrices, of which the last two dimensions of a transposed operand are swapped. Other dimensions are
// broadcast.
absl::StatusOr<Contraction> MatrixContraction(const Shape& left, bool is_left_transposed, const Shape& right,
                                              bool is_right_transposed, const Shape& result);

// A batch of matrix products C[rows, columns] = A[rows, depth] B[depth, columns]. All steps are in elements.
struct Product {
  struct Batch {
    int64_t size, a, b, c;
  };
  int left = 0, right = 1;  // Inputs of the contraction that are A and B.
  int64_t offset_a = 0, offset_b = 0;
  std::vector<Batch> batches;
  int64_t rows = 1, columns = 1, depth = 1;
  int64_t row_a = 0, row_c = 0, column_b = 0, column_c = 0, depth_a = 0, depth_b = 0;

  int64_t num_batches() const;
  int64_t multiplications() const { return num_batches() * rows * columns * depth; }
};

// Returns the products with the longest rows and columns that the strides allow. The columns of C are contiguous if one
// of the inputs allows it. Returns Unimplemented if a dimension is summed in one input alone, or if the summed
// dimensions cannot be joined to one.
absl::StatusOr<Product> ProductOf(const Contraction& contraction);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_CONTRACTION_H_

// The right operand of matrix products, packed for the inner loops if that pays.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_RIGHT_MATRIX_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_RIGHT_MATRIX_H_

#include <cstdint>

namespace permafrost {
namespace onednn {

// A matrix [depth, columns] with any steps between its elements. The steps, in floats, are those of the matrix that is
// passed to Load.
class RightMatrix {
 public:
  // `rows`: number of rows of the left operands. A matrix is not packed for so few that packing takes longer than the
  // product.
  RightMatrix(int64_t rows, int64_t depth, int64_t columns, int64_t depth_step, int64_t column_step);

  // Returns the number of floats that Load needs at `packed`.
  int64_t packed_floats() const { return packed_floats_; }
  // Makes `data` the matrix. Keeps both pointers.
  void Load(const float* data, float* packed);
  // Computes result[rows, columns] = left[rows, depth] * matrix. The elements of a row are contiguous in both.
  void Multiply(int64_t rows, const float* left, int64_t left_step, float* result, int64_t result_step) const;
  // Returns the number of columns in whole vectors.
  int64_t padded_columns() const { return padded_columns_; }
  // The same, faster, for a result with rows of padded_columns(). The contents of the additional columns are undefined.
  void MultiplyPadded(int64_t rows, const float* left, int64_t left_step, float* result) const;

 private:
  void Pack(float* to) const;
  void MultiplyPacked(int64_t rows, const float* left, int64_t left_step, float* result, int64_t result_step,
                      bool is_padded) const;

  int64_t depth_, columns_, depth_step_, column_step_;
  bool is_packed_;
  int64_t packed_floats_ = 0, padded_columns_ = 0;
  const float* data_ = nullptr;
  const float* packed_ = nullptr;
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_RIGHT_MATRIX_H_

// Poolings, reductions, normalisations and softmax of codes.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_REDUCTION_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_REDUCTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {

enum class PoolOp : uint8_t { kAverage, kMax };

// AVERAGE_POOL_2D and MAX_POOL_2D of NHWC codes. Input and output have the same scale, of which only the activation
// needs to know. The average is that of the codes inside the image, halves away from zero.
class IntegerPool {
 public:
  static absl::StatusOr<IntegerPool> Make(PoolOp op, const Affine& codes, FusedActivation activation, int64_t batch,
                                          int64_t channels, const Window& window);

  int64_t scratch_size() const { return scratch_size_; }
  int64_t rows() const { return rows_; }  // Output lines of all images: batch * height.
  void Compute(const void* input, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  template <typename T>
  void ComputeLines(const T* input, int64_t first, int64_t last, int32_t* sums, T* output) const;

  PoolOp op_ = PoolOp::kAverage;
  CodeType type_ = CodeType::kInt8;
  CodeRange range_ = {};
  Window window_;
  int64_t channels_ = 0, rows_ = 0, scratch_size_ = 0;
};

enum class ReduceOp : uint8_t { kMean, kSum, kMax, kMin, kProd };

// MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD.
class IntegerReduction {
 public:
  // `dims` is the input's shape; `is_reduced[d]` says whether dimension d is reduced. MAX and MIN copy codes.
  static absl::StatusOr<IntegerReduction> Make(ReduceOp op, const Affine& input, const Affine& output,
                                               absl::Span<const int64_t> dims, absl::Span<const bool> is_reduced,
                                               Rounding rounding = Rounding::kTwice);

  int64_t outputs() const { return outputs_; }
  // Computes output elements [first, last), in the order of the dimensions that remain.
  void Compute(const void* input, int64_t first, int64_t last, void* output) const;

 private:
  template <typename T>
  void ComputeCodes(const T* input, int64_t first, int64_t last, T* output) const;
  // The code for the sum, product or extreme of an output's codes.
  int32_t CodeOf(int64_t sum) const;

  struct Axis {
    int64_t size, step;
  };
  ReduceOp op_ = ReduceOp::kMean;
  Affine input_, output_;
  Rounding rounding_ = Rounding::kTwice;
  FixedMultiplier factor_;
  std::vector<Axis> kept_, reduced_;  // Outermost first.
  int64_t outputs_ = 0, count_ = 0;
};

// SOFTMAX over rows of `depth` codes. int8 and uint8 to their own type or to int16; int16 to int16. The output's scale
// and zero point are fixed: 1/256 and -128 (uint8 0), 1/65536 and -32768 from 8 bits to int16, 1/32768 and 0 from
// int16. Make rejects others.
class IntegerSoftmax {
 public:
  static absl::StatusOr<IntegerSoftmax> Make(const Affine& input, const Affine& output, float beta, int64_t depth);
  // Computes `rows` rows.
  void Compute(int64_t rows, const void* x, void* y) const;

 private:
  template <typename In, typename Out>
  void ComputeBytes(int64_t rows, const In* x, Out* y) const;
  void ComputeWords(int64_t rows, const int16_t* x, int16_t* y) const;

  CodeType input_ = CodeType::kInt8, output_ = CodeType::kInt8;
  int64_t depth_ = 0;
  FixedMultiplier factor_;
  std::vector<int32_t> exponentials_;               // By distance to the row's largest code; -1 far below it. 8 bits.
  std::vector<int16_t> exp_table_, inverse_table_;  // 16 bits.
};

// LOG_SOFTMAX over rows of int8 or uint8. The output has scale 16/256 and zero point 127 (uint8 255).
class IntegerLogSoftmax {
 public:
  static absl::StatusOr<IntegerLogSoftmax> Make(const Affine& input, const Affine& output, float beta, int64_t depth);
  void Compute(int64_t rows, const void* x, void* y) const;

 private:
  template <typename T>
  void ComputeRows(int64_t rows, const T* x, T* y) const;

  CodeType type_ = CodeType::kInt8;
  int64_t depth_ = 0;
  FixedMultiplier factor_, reverse_factor_;
  int32_t difference_low_ = 0;
  std::vector<int32_t> differences_, exponentials_;  // By distance to the row's largest code: Q5.26, and Q12.19 or -1.
};

// L2_NORMALIZATION over rows of int8 or uint8. The output has scale 1/128 and zero point 0 (uint8 128).
class IntegerL2Normalization {
 public:
  static absl::StatusOr<IntegerL2Normalization> Make(const Affine& input, const Affine& output, int64_t depth);
  void Compute(int64_t rows, const void* x, void* y) const;

 private:
  template <typename T>
  void ComputeRows(int64_t rows, const T* x, T* y) const;

  CodeType type_ = CodeType::kInt8;
  int32_t zero_point_ = 0;
  int64_t depth_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_REDUCTION_H_

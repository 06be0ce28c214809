// Convolutions and matrix products of codes: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED, BATCH_MATMUL.
//
//   output = clamp(rescale(bias + sum of (input - zero of input) * (filter - zero of filter)) + zero of output)
//
// with a factor input scale * filter scale[c] / output scale for each output channel c. Sums have 32 bits, or 64 bits
// for inputs of int16 with a bias of int64 (and all depthwise and transposed convolutions of int16).
//
// | input | filter | filter's zero point | bias | rounding of LiteRT's reference kernels |
// |---|---|---|---|---|
// | int8 | int8, also unpacked int4 | 0 | none, int32 | kTwice; FULLY_CONNECTED kExact |
// | uint8 | uint8, one scale | any | none, int32 | kTwice |
// | int16, zero point 0 | int8 | 0 | none, int32, int64 | 32-bit sums kTwice; 64-bit sums MultiplyWide, and kTwice is
// ignored; FULLY_CONNECTED kExact |
//
// The type of the output is that of the input.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_CONVOLUTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {

enum class BiasType : uint8_t { kNone, kInt32, kInt64 };

// Scales and rounding of an operator with weights.
struct IntegerWeighting {
  Affine input, output;
  absl::Span<const float> filter_scales;  // One, or one for each output channel. Read in Make only.
  int32_t filter_zero_point = 0;          // Other than 0 for uint8 only.
  BiasType bias = BiasType::kNone;
  FusedActivation activation = FusedActivation::kNone;
  Rounding rounding = Rounding::kTwice;
};

// Converts accumulators of each output channel to codes.
class AccumulatorScale {
 public:
  // Computes a multiplier for each of `channels`. `is_wide`: accumulators have 64 bits.
  static absl::StatusOr<AccumulatorScale> Make(const IntegerWeighting& weighting, int64_t channels, bool is_wide);

  bool is_wide() const { return is_wide_; }
  // output[i] = code of sums[i], which belongs to output channel first_channel + i. The type of `output` is that of the
  // operator's output.
  void Convert(const int32_t* sums, int64_t first_channel, int64_t count, void* output) const;
  void Convert(const int64_t* sums, int64_t first_channel, int64_t count, void* output) const;

 private:
  std::vector<FixedMultiplier> multipliers_;
  std::vector<double> factors_;  // Only for kExact.
  Rounding rounding_ = Rounding::kTwice;
  bool is_wide_ = false;
  CodeType type_ = CodeType::kInt8;
  int32_t zero_point_ = 0;
  CodeRange range_ = {};
};

// The distances, in elements, between neighbours of a filter along each of its axes.
struct FilterStrides {
  int64_t output, row, column, input;
};

// Sizes of a convolution. `window` has input and output sizes, taps, strides, dilations and padding; taps outside the
// image contribute nothing. Tensors are NHWC.
struct ConvolutionSizes {
  int64_t batch = 0, input_channels = 0, output_channels = 0;
  int64_t groups = 1;  // Divides both channel counts; a filter has input_channels / groups inputs.
  Window window;

  // TensorFlow Lite's filter [output, height, width, input] and TensorFlow's [height, width, input, output].
  FilterStrides OutputFirst() const;
  FilterStrides OutputLast() const;
};

// A product of rows with a packed matrix; shared by CONV_2D, FULLY_CONNECTED and BATCH_MATMUL.
class IntegerProduct {
 public:
  // columns: output channels. The element of the right matrix for input k and column j is at k * depth_step + j *
  // column_step. Constant right matrices are packed once (Pack); others before each use.
  static absl::StatusOr<IntegerProduct> Make(const IntegerWeighting& weighting, int64_t depth, int64_t columns,
                                             int64_t depth_step, int64_t column_step);

  // Bytes of the packed matrix, aligned to 64.
  int64_t packed_size() const { return packed_size_; }
  // `right` has codes (int8 or uint8, as the weighting's input says), `bias` `columns` values of the bias type, or is
  // null.
  void Pack(const void* right, const void* bias, char* packed) const;

  // Bytes of scratch memory of one thread, aligned to 64.
  int64_t scratch_size() const { return scratch_size_; }
  // Computes output rows [first, last) from input rows of `depth` codes.
  void Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  friend class IntegerConvolution;
  struct Block;

  AccumulatorScale scale_;
  CodeType type_ = CodeType::kInt8;
  BiasType bias_ = BiasType::kNone;
  int64_t depth_ = 0, columns_ = 0, depth_step_ = 0, column_step_ = 0;
  int32_t input_zero_ = 0, filter_zero_ = 0;
  int64_t packed_size_ = 0, scratch_size_ = 0;
};

// CONV_2D, grouped too.
class IntegerConvolution {
 public:
  static absl::StatusOr<IntegerConvolution> Make(const IntegerWeighting& weighting, const ConvolutionSizes& sizes,
                                                 const FilterStrides& filter);

  int64_t packed_size() const { return packed_size_; }
  void Pack(const void* filter, const void* bias, char* packed) const;

  int64_t scratch_size() const { return scratch_size_; }
  // Output pixels of all images: batch * height * width.
  int64_t rows() const { return rows_; }
  // Computes output pixels [first, last).
  void Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  ConvolutionSizes sizes_;
  FilterStrides filter_ = {};
  std::vector<IntegerProduct> products_;  // One for each group.
  int64_t packed_size_ = 0, scratch_size_ = 0, rows_ = 0;
  CodeType type_ = CodeType::kInt8;
  int32_t input_zero_ = 0;
  bool is_pointwise_ = false;  // Input pixels are the rows of the product.
};

// DEPTHWISE_CONV_2D. The filter is [height, width, output_channels], where output channel = input channel * multiplier
// + m: TensorFlow's [height, width, input_channels, multiplier] and TensorFlow Lite's [1, height, width, output].
// `sizes.groups` is ignored. A right bias of int16 inputs is int64 or none.
class IntegerDepthwise {
 public:
  static absl::StatusOr<IntegerDepthwise> Make(const IntegerWeighting& weighting, const ConvolutionSizes& sizes);

  int64_t scratch_size() const { return scratch_size_; }
  int64_t rows() const { return rows_; }  // Output lines of all images: batch * height.
  // Computes output lines [first, last).
  void Compute(const void* input, const void* filter, const void* bias, int64_t first, int64_t last, char* scratch,
               void* output) const;

 private:
  AccumulatorScale scale_;
  ConvolutionSizes sizes_;
  CodeType type_ = CodeType::kInt8;
  BiasType bias_ = BiasType::kNone;
  int32_t input_zero_ = 0, filter_zero_ = 0;
  int64_t scratch_size_ = 0, rows_ = 0, multiplier_ = 1;
};

// TRANSPOSE_CONV. `sizes.window` describes the forward convolution whose gradient this is: window.y.output is the
// height of this operator's input, window.y.input the height of its output. input_channels and output_channels are
// those of this operator.
class IntegerTransposeConvolution {
 public:
  static absl::StatusOr<IntegerTransposeConvolution> Make(const IntegerWeighting& weighting,
                                                          const ConvolutionSizes& sizes, const FilterStrides& filter);

  int64_t scratch_size() const { return scratch_size_; }
  int64_t rows() const { return rows_; }  // Output lines of all images: batch * height.
  void Compute(const void* input, const void* filter, const void* bias, int64_t first, int64_t last, char* scratch,
               void* output) const;

 private:
  AccumulatorScale scale_;
  ConvolutionSizes sizes_;
  FilterStrides filter_ = {};
  CodeType type_ = CodeType::kInt8;
  BiasType bias_ = BiasType::kNone;
  int32_t input_zero_ = 0, filter_zero_ = 0;
  int64_t scratch_size_ = 0, rows_ = 0;
};

// BATCH_MATMUL: one product of [rows, depth] and [depth, columns] codes of the same type, both with zero points. The
// factor is float(left scale * right scale) / output scale. Sums of int16 have 64 bits. The caller iterates over the
// batches (and their broadcast) and divides rows.
class IntegerMatrixProduct {
 public:
  struct Sizes {
    int64_t rows = 0, depth = 0, columns = 0;
    bool transpose_left = false, transpose_right = false;  // Left is [depth, rows]; right is [columns, depth].
  };
  static absl::StatusOr<IntegerMatrixProduct> Make(const Affine& left, const Affine& right, const Affine& output,
                                                   const Sizes& sizes, Rounding rounding);

  int64_t scratch_size() const { return scratch_size_; }
  // Computes rows [first, last) of one product. `left`, `right` and `output` are the matrices of one batch.
  void Compute(const void* left, const void* right, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  AccumulatorScale scale_;
  Sizes sizes_;
  CodeType type_ = CodeType::kInt8;
  int32_t left_zero_ = 0, right_zero_ = 0;
  int64_t scratch_size_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_CONVOLUTION_H_

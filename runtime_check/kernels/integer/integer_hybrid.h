// Hybrid operators: float inputs are quantised to 8 bits when they run, row by row or image by image, and are
// multiplied with int8 weights. Outputs are float.
//
//   output = activation(bias + (sum of filter * (code - zero point)) * (row scale * filter scale[c]))
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_HYBRID_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_HYBRID_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"
#include "runtime_check/kernels/integer/integer_convolution.h"

namespace permafrost {

// Scale and zero point that were found for one row.
struct RowScale {
  float scale;
  int32_t zero_point;
};

// Quantises `count` floats. Symmetric: scale is largest magnitude / 127, codes in [-127, 127]. Asymmetric: the range
// includes 0, codes in [-128, 127]. NaN is treated as 0; infinities give codes of the range's ends.
RowScale QuantizeRowSymmetric(int64_t count, const float* x, int8_t* codes);
RowScale QuantizeRowAsymmetric(int64_t count, const float* x, int8_t* codes);

// y is clamped in place.
void ClampFloats(FusedActivation activation, int64_t count, float* y);

// FULLY_CONNECTED: rows of `depth` floats, weights [columns, depth].
class HybridDense {
 public:
  static absl::StatusOr<HybridDense> Make(int64_t depth, int64_t columns, absl::Span<const float> filter_scales,
                                          bool asymmetric, FusedActivation activation);
  int64_t packed_size() const { return packed_size_; }
  void Pack(const int8_t* filter, char* packed) const;
  int64_t scratch_size() const { return scratch_size_; }
  // Computes rows [first, last). `bias` may be null.
  void Compute(const float* input, const char* packed, const float* bias, int64_t first, int64_t last, char* scratch,
               float* output) const;

 private:
  IntegerProduct product_;
  int64_t depth_ = 0, columns_ = 0, packed_size_ = 0, scratch_size_ = 0;
  int64_t block_rows_ = 1, sums_offset_ = 0;  // Rows that are quantised together; the weights' sums in packed memory.
  std::vector<float> scales_;
  bool asymmetric_ = false;
  FusedActivation activation_ = FusedActivation::kNone;
};

// CONV_2D and DEPTHWISE_CONV_2D: one scale for each image, asymmetric if the filter has several scales or
// `asymmetric`, else symmetric. CONV_2D's filter has any strides; that of DEPTHWISE_CONV_2D is [height, width, output].
class HybridConvolution {
 public:
  static absl::StatusOr<HybridConvolution> Make(const ConvolutionSizes& sizes, bool is_depthwise,
                                                const FilterStrides& filter, absl::Span<const float> filter_scales,
                                                bool asymmetric, FusedActivation activation);
  int64_t packed_size() const { return packed_size_; }
  void Pack(const int8_t* filter, char* packed) const;

  int64_t images() const { return sizes_.batch; }
  int64_t image_size() const { return image_size_; }    // Elements of an input image.
  int64_t output_size() const { return output_size_; }  // Elements of an output image.
  // Quantises an image to image_size() codes.
  RowScale Quantize(const float* image, int8_t* codes) const;

  int64_t scratch_size() const { return scratch_size_; }
  int64_t rows() const { return rows_; }  // Units of work of one image.
  // Computes rows [first, last) of an image. `bias` may be null.
  void Compute(const int8_t* codes, RowScale scale, const char* packed, const float* bias, int64_t first, int64_t last,
               char* scratch, float* output) const;

 private:
  void ComputeDepthwise(const int8_t* codes, RowScale scale, const int8_t* filter, const float* bias, int64_t first,
                        int64_t last, int32_t* sums, float* output) const;
  void Finish(const int32_t* sums, RowScale scale, const float* bias, int64_t channel, int64_t count, float* y) const;

  ConvolutionSizes sizes_;
  FilterStrides filter_ = {};
  IntegerConvolution convolution_;  // Of one image; not of DEPTHWISE_CONV_2D.
  bool asymmetric_ = false, is_depthwise_ = false;
  int64_t image_size_ = 0, output_size_ = 0, rows_ = 0;
  int64_t packed_size_ = 0, sums_offset_ = 0, scratch_size_ = 0;
  std::vector<float> scales_;
  FusedActivation activation_ = FusedActivation::kNone;
};

// BATCH_MATMUL: one product of float [rows, depth] and int8 [depth, columns]; each row has its own scale. The caller
// iterates over batches.
class HybridMatrixProduct {
 public:
  static absl::StatusOr<HybridMatrixProduct> Make(const IntegerMatrixProduct::Sizes& sizes, float right_scale,
                                                  bool asymmetric);
  int64_t scratch_size() const { return scratch_size_; }
  void Compute(const float* left, const int8_t* right, int64_t first, int64_t last, char* scratch, float* output) const;

 private:
  IntegerMatrixProduct::Sizes sizes_;
  float right_scale_ = 0;
  bool asymmetric_ = false;
  int64_t values_offset_ = 0, scratch_size_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_HYBRID_H_

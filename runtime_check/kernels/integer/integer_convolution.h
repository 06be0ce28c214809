// Convolutions and matrix products of codes: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED, BATCH_MATMUL.
//
//   output = clamp(rescale(bias + sum of (input - zero of input) * (filter - zero of filter)) + zero of output)
//
// with a factor input scale * filter scale[c] / output scale for each output channel c. Sums have 32 bits and wrap
// around, or 64 bits.
//
// | input | filter | filter's zero point | bias | sums | rounding of LiteRT's reference kernels |
// |---|---|---|---|---|---|
// | int8 | int8, also unpacked int4 | 0 | none, int32 | 32 bits | kTwice; FULLY_CONNECTED kExact |
// | uint8 | uint8, one scale | any | none, int32 | 32 bits | kTwice |
// | int16, zero point 0 | int8 | 0 | int32 | 32 bits | kTwice; FULLY_CONNECTED kExact |
// | int16, zero point 0 | int8 | 0 | none, int64 | 64 bits | any but kExact means MultiplyWide; FULLY_CONNECTED kExact
// |
//
// Depthwise and transposed convolutions of int16 always have sums of 64 bits. The output has the input's type.
//
// Filters are packed: once in Prepare where they are constant, else before each use.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_CONVOLUTION_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/integer/byte_tiles.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"
#include "runtime_check/kernels/integer/integer_loops.h"
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

// Converts sums of each output channel to codes.
class SumScale {
 public:
  // Computes the multipliers of `channels`. `is_wide`: sums have 64 bits. `float_product`: the product of both scales
  // is rounded to float, as for uint8 and BATCH_MATMUL.
  static absl::StatusOr<SumScale> Make(const IntegerWeighting& weighting, int64_t channels, bool is_wide,
                                       bool float_product);

  bool is_wide() const { return is_wide_; }
  CodeType type() const { return type_; }
  // Converts the sums of `rows` rows, `sum_stride` elements apart, of output channels [first_channel, first_channel +
  // count), to codes of the output's type. Rows of `output` are `output_stride` elements apart. `sums` are int64_t if
  // is_wide(), else int32_t.
  void Convert(const void* sums, int64_t sum_stride, int64_t rows, int64_t first_channel, int64_t count, void* output,
               int64_t output_stride) const;

  // Returns the conversion of byte_tiles.h without blocks. REQUIRES: type() is 8 bits wide.
  ByteConversion ToBytes() const;
  // Returns the blocks of ToBytes() for `count` positions, a multiple of 16, where position i has the sums of
  // channel_at(i); a negative channel is unused. Empty if the conversion has another form.
  std::vector<ConversionBlock> TwiceBlocks(int64_t count, absl::FunctionRef<int64_t(int64_t)> channel_at) const;
  std::vector<FactorBlock> FactorBlocks() const;  // Of all channels in order.

 private:
  void ConvertTwice(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const;
  void ConvertExact(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const;
  void ConvertNarrow(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const;
  void ConvertWide(const int64_t* sums, int64_t first, int64_t count, int32_t* codes) const;

  std::vector<int32_t> multipliers_, left_shifts_, right_shifts_;
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

// Variations of a product.
struct IntegerProductTraits {
  bool float_product = false;           // As for SumScale.
  bool always_wide = false;             // int16 has sums of 64 bits with a bias of int32 too.
  const IntegerLoops* loops = nullptr;  // In place of the best ones, and of ProductTiles.
};

// A product of rows with a packed matrix: FULLY_CONNECTED, and the core of the other operators.
class IntegerProduct {
 public:
  // The rows of the right matrix: `inputs` for each tap of a window, with the distances between neighbours in elements.
  // A matrix without taps has the default.
  struct Depth {
    int64_t inputs = 0, input_step = 0;
    int64_t taps_y = 1, tap_y_step = 0, taps_x = 1, tap_x_step = 0;
    int64_t segment_taps = 0;  // Taps that are adjacent in the rows of ComputeLines; 0: all.
  };
  // Neighbouring columns are `column_step` elements apart.
  static absl::StatusOr<IntegerProduct> Make(const IntegerWeighting& weighting, const Depth& depth, int64_t columns,
                                             int64_t column_step, const IntegerProductTraits& traits = {});

  // Bytes of the packed matrix.
  int64_t packed_size() const { return packed_size_; }
  // `right` has int8 codes, or uint8 where the input has; `bias` has `columns` values of the bias type. `packed` is
  // aligned to 8 bytes.
  void Pack(const void* right, const void* bias, char* packed) const;

  // Bytes of scratch memory of one thread; it is aligned to 8 bytes.
  int64_t scratch_size() const { return scratch_size_; }
  // Computes output rows [first, last) from input rows of `depth` codes. REQUIRES: one segment.
  void Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;

  // Receives sums of 32 bits in place of their conversion to codes: those of `count` rows from `row` on, of output
  // channels [channel, channel + columns), whose rows are `stride` elements apart.
  using SumsSink = absl::FunctionRef<void(int64_t row, int64_t count, int64_t channel, int64_t columns, int64_t stride,
                                          const int32_t* sums)>;
  // As Compute, for sums. REQUIRES: sums have 32 bits.
  void ComputeSums(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                   SumsSink sink) const;

  // Returns the address of the `depth` codes of a row; they may be written to `buffer`.
  using RowOf = absl::FunctionRef<const void*(int64_t row, char* buffer)>;
  // As Compute; row r is written at output + r * output_stride, in elements.
  void ComputeRows(RowOf row_of, const char* packed, int64_t first, int64_t last, char* scratch, void* output,
                   int64_t output_stride, const SumsSink* sink = nullptr) const;

  // Whether ProductTiles compute a product of these types, so that ComputeLines may be called.
  static bool HasTiles(const IntegerWeighting& weighting) {
    return BytesOf(weighting.input.type) == 1 && SupportedProductTiles() != nullptr;
  }
  // Rows that are read where they lie: line l starts at rows.first + l * line_step, and has rows_per_line rows. Needs
  // no scratch memory. Of `rows`, first, step, segments and num_segments are set. Steps of the output are in bytes.
  struct Lines {
    ByteRows rows;
    int64_t lines = 1, line_step = 0, rows_per_line = 0;
    int64_t row_output_step = 0, line_output_step = 0;
    const SumsSink* sink = nullptr;            // If set, receives the sums, and there is no output.
    int64_t first_row = 0, first_channel = 0;  // For the sink; rows of successive lines follow each other.
  };
  void ComputeLines(Lines lines, const char* packed, void* output) const;

 private:
  void ComputeContiguous(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                         void* output, const SumsSink* sink) const;
  // Writes a row as the loops read it, and the sum of its elements.
  void PrepareRow(const void* codes, char* row, int32_t* sum) const;
  // Subtracts the term of the rows' sums, for weights with a zero point.
  void SubtractRowSums(const ByteRows& rows, int64_t count, int32_t* sums) const;
  // Computes the sums of one panel in 64 bits.
  void MultiplyWidePanel(const char* rows, int64_t count, const int8_t* weights, const int64_t* start, int32_t* part,
                         int64_t* sums) const;

  SumScale scale_;
  const IntegerLoops* loops_ = nullptr;
  const ProductTiles* tiles_ = nullptr;  // In place of the loops if set.
  std::vector<ConversionBlock> twice_blocks_;
  std::vector<FactorBlock> factor_blocks_;
  CodeType type_ = CodeType::kInt8;
  BiasType bias_ = BiasType::kNone;
  Depth layout_;
  int64_t depth_ = 0, columns_ = 0, column_step_ = 0;
  int64_t group_ = 2, width_ = 0;  // Depths that are multiplied by one instruction, and columns of a panel.
  int64_t num_segments_ = 1, segment_depth_ = 0, segment_groups_ = 0;
  int64_t groups_ = 0, padded_columns_ = 0, row_bytes_ = 0, block_rows_ = 0;
  int32_t input_zero_ = 0, filter_zero_ = 0;  // Of the rows and weights as they are multiplied.
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
  // Units of work: output pixels of all images, or their lines, as is_by_line() says.
  int64_t rows() const { return rows_; }
  bool is_by_line() const { return is_direct_; }
  // Computes output rows [first, last).
  void Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;
  // As Compute, for sums of 32 bits of int8; the sink's rows are pixels. `padding` is the code of taps outside of the
  // image.
  void ComputeSums(const void* input, int8_t padding, const char* packed, int64_t first, int64_t last, char* scratch,
                   IntegerProduct::SumsSink sink) const;

 private:
  void ComputeWith(const void* input, int zero_byte, const char* packed, int64_t first, int64_t last, char* scratch,
                   void* output, const IntegerProduct::SumsSink* sink) const;
  void ComputeDirect(const void* input, int zero_byte, const char* packed, int64_t first, int64_t last, char* scratch,
                     void* output, const IntegerProduct::SumsSink* sink) const;

  ConvolutionSizes sizes_;
  FilterStrides filter_ = {};
  std::vector<IntegerProduct> products_;  // One for each group.
  std::vector<int64_t> offsets_;          // Of their packed weights.
  int64_t packed_size_ = 0, scratch_size_ = 0, rows_ = 0;
  int64_t code_size_ = 1;
  int zero_byte_ = 0;          // Each byte of the code of 0.
  bool is_pointwise_ = false;  // Input pixels are the rows of the product.
  BiasType bias_ = BiasType::kNone;
  // Windows are read from the input, or from strips of lines with padding around them: strip_width_ pixels, for
  // strip_lines_ output lines.
  bool is_direct_ = false, has_strips_ = false;
  int64_t strip_width_ = 0, strip_lines_ = 0;
  std::vector<int64_t> segments_;  // Offsets of the parts of a window.
};

// DEPTHWISE_CONV_2D. The filter is [height, width, output_channels], where output channel = input channel * multiplier
// + m: TensorFlow's [height, width, input_channels, multiplier] and TensorFlow Lite's [1, height, width, output].
// `sizes.groups` is ignored.
class IntegerDepthwise {
 public:
  static absl::StatusOr<IntegerDepthwise> Make(const IntegerWeighting& weighting, const ConvolutionSizes& sizes);

  int64_t packed_size() const { return packed_size_; }
  void Pack(const void* filter, const void* bias, char* packed) const;

  int64_t scratch_size() const { return scratch_size_; }
  int64_t rows() const { return rows_; }  // Output lines of all images: batch * height.
  // Computes output lines [first, last).
  void Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  template <typename T, typename Sum>
  void ComputeLines(const T* input, const char* packed, int64_t first, int64_t last, char* scratch, T* output) const;
  void ComputeTiles(const uint8_t* input, const char* packed, int64_t first, int64_t last, char* scratch,
                    uint8_t* output) const;
  // Returns the channel at a position of the packed weights, -1 for none.
  int64_t ChannelAt(int64_t position) const;
  void PackTiles(const void* filter, const void* bias, char* packed) const;

  SumScale scale_;
  DepthwiseLoop loop_ = nullptr;  // In place of ComputeLines if set.
  std::vector<ConversionBlock> blocks_;
  int64_t tile_taps_ = 0, padded_channels_ = 0, strip_lines_ = 0;
  int64_t pixels_at_once_ = 1;    // Adjacent pixels whose channels are one block.
  bool has_two_weights_ = false;  // Each tap twice, since its weights need more than 8 bits.
  ConvolutionSizes sizes_;
  CodeType type_ = CodeType::kInt8;
  BiasType bias_ = BiasType::kNone;
  int32_t input_zero_ = 0, filter_zero_ = 0;
  int64_t packed_size_ = 0, scratch_size_ = 0, rows_ = 0, multiplier_ = 1;
};

// TRANSPOSE_CONV. `sizes.window` describes the forward convolution whose gradient this is: window.y.output is the
// height of this operator's input, window.y.input the height of its output. `input_channels` and `output_channels` are
// those of this operator; the filter's strides likewise.
class IntegerTransposeConvolution {
 public:
  static absl::StatusOr<IntegerTransposeConvolution> Make(const IntegerWeighting& weighting,
                                                          const ConvolutionSizes& sizes, const FilterStrides& filter);

  int64_t packed_size() const { return packed_size_; }
  void Pack(const void* filter, const void* bias, char* packed) const;

  int64_t scratch_size() const { return scratch_size_; }
  int64_t rows() const { return rows_; }  // Output lines of all images: batch * height.
  void Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  // Output pixels whose positions have the same remainder of the stride have the same taps: every stride-th one from
  // the remainder on.
  struct Phase {
    int64_t y, x;            // The first tap.
    int64_t taps_y, taps_x;  // 0 for pixels without taps.
    IntegerProduct product;
    int64_t offset;  // Of the packed weights.
  };

  ConvolutionSizes sizes_;
  FilterStrides filter_ = {};
  std::vector<Phase> phases_;  // [phases_y_][phases_x_], then one without taps.
  int64_t phases_y_ = 0, phases_x_ = 0;
  int64_t packed_size_ = 0, scratch_size_ = 0, rows_ = 0, code_size_ = 1;
  int zero_byte_ = 0;  // Each byte of the code of 0.
};

// BATCH_MATMUL: one product of [rows, depth] and [depth, columns] codes of the same type, both with zero points. The
// factor is float(left scale * right scale) / output scale. Sums of int16 have 64 bits. The caller iterates over the
// batches (and their broadcast), packs each right matrix, and divides rows.
class IntegerMatrixProduct {
 public:
  struct Sizes {
    int64_t rows = 0, depth = 0, columns = 0;
    bool transpose_left = false, transpose_right = false;  // Left is [depth, rows]; right is [columns, depth].
  };
  static absl::StatusOr<IntegerMatrixProduct> Make(const Affine& left, const Affine& right, const Affine& output,
                                                   const Sizes& sizes, Rounding rounding = Rounding::kTwice);

  int64_t packed_size() const { return packed_size_; }
  void Pack(const void* right, char* packed) const;

  int64_t scratch_size() const { return scratch_size_; }
  // Computes rows [first, last) of one product. `left` and `output` are the matrices of one batch.
  void Compute(const void* left, const char* packed, int64_t first, int64_t last, char* scratch, void* output) const;

 private:
  SumScale scale_;  // Only for int16.
  IntegerProduct product_;
  Sizes sizes_;
  CodeType type_ = CodeType::kInt8;
  int32_t left_zero_ = 0, right_zero_ = 0;
  int64_t packed_size_ = 0, scratch_size_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_CONVOLUTION_H_

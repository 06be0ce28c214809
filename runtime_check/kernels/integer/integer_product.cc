// Implements products of matrices of codes.
//
// Rows are multiplied as unsigned bytes (code + 128 for int8), or as int16 after their zero point is subtracted;
// weights as int8 (code - 128 for uint8). With a and w as they are multiplied, and za and zw their zero points,
//
//   sum of (a - za) (w - zw) = sum of a w  +  (depth za zw - za * sum of the column's w)  -  zw * sum of the row's a
//
// The second term and the bias are the starting values of a column; the last one is 0 but for weights with a zero
// point.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/integer/integer_convolution.h"

namespace permafrost {
namespace {

constexpr int64_t kAlignment = 64;  // Of the parts of packed and scratch memory: a cache line.

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sizes of packed and scratch memory stay far below the range of int64_t if each operand has fewer elements than this.
constexpr int64_t kMostElements = int64_t{1} << 40;

// Groups of two products of int16 and int8 whose sum stays below 2^31: 2^23 is the largest sum of a group.
constexpr int64_t kGroupsInSum = 128;

constexpr int64_t kLowest32 = std::numeric_limits<int32_t>::min(), kHighest32 = std::numeric_limits<int32_t>::max();

template <typename T>
T LoadAt(const void* values, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(values) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

int64_t BiasAt(BiasType type, const void* bias, int64_t i) {
  if (bias == nullptr || type == BiasType::kNone) return 0;
  return type == BiasType::kInt32 ? LoadAt<int32_t>(bias, i) : LoadAt<int64_t>(bias, i);
}

}  // namespace

absl::StatusOr<SumScale> SumScale::Make(const IntegerWeighting& weighting, int64_t channels, bool is_wide,
                                        bool float_product) {
  PF_RETURN_IF_ERROR(CheckAffine(weighting.input, "input"));
  PF_RETURN_IF_ERROR(CheckAffine(weighting.output, "output"));
  PF_RETURN_IF_ERROR(CheckScales(weighting.filter_scales, channels, "filter"));
  if (weighting.output.type == CodeType::kInt32) {
    return absl::UnimplementedError("output: has type int32, expected codes of 8 or 16 bits");
  }
  SumScale scale;
  scale.rounding_ = weighting.rounding;
  scale.is_wide_ = is_wide;
  scale.type_ = weighting.output.type;
  scale.zero_point_ = weighting.output.zero_point;
  scale.range_ = ActivationRange(weighting.activation, weighting.output);
  if (scale.range_.low > scale.range_.high) {
    return absl::InvalidArgumentError("output: no code remains after the fused activation");
  }
  const auto count = static_cast<size_t>(channels);
  const bool is_exact = weighting.rounding == Rounding::kExact;
  if (is_exact) {
    scale.factors_.resize(count);
  } else {
    scale.multipliers_.resize(count);
    scale.left_shifts_.resize(count);
    scale.right_shifts_.resize(count);
  }
  const double input = weighting.input.scale, output = weighting.output.scale;
  for (size_t c = 0; c < count; ++c) {
    const float filter = weighting.filter_scales[weighting.filter_scales.size() == 1 ? 0 : c];
    const double product =
        float_product ? static_cast<double>(weighting.input.scale * filter) : input * static_cast<double>(filter);
    const double factor = product / output;
    if (!std::isfinite(factor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the scales of input, filter and output give the factor ", factor));
    }
    if (is_exact) {
      scale.factors_[c] = factor;
      continue;
    }
    const FixedMultiplier multiplier = QuantizeMultiplier(factor);
    // 64-bit sums are shifted right by 15 - shift.
    PF_RETURN_IF_ERROR(CheckMultiplier(multiplier, "input scale * filter scale / output scale", is_wide ? 14 : 30));
    scale.multipliers_[c] = multiplier.multiplier;
    const bool is_split = !is_wide && weighting.rounding == Rounding::kTwice;
    scale.left_shifts_[c] = is_split ? std::max(multiplier.shift, 0) : multiplier.shift;
    scale.right_shifts_[c] = std::max(-multiplier.shift, 0);
  }
  return scale;
}

PF_INLINE inline void SumScale::ConvertTwice(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const {
  const int32_t zero = zero_point_, low = range_.low - zero, high = range_.high - zero;
  const int32_t* multipliers = multipliers_.data() + first;
  const int32_t* left = left_shifts_.data() + first;
  const int32_t* right = right_shifts_.data() + first;
  for (int64_t c = 0; c < count; ++c) {
    // MultiplyTwice with a positive multiplier, in a form that the compiler vectorises.
    const int64_t product = int64_t{static_cast<int32_t>(static_cast<uint32_t>(sums[c]) << left[c])} * multipliers[c];
    const auto high_half = static_cast<int32_t>((static_cast<uint64_t>(product) + (uint64_t{1} << 30)) >> 31);
    const auto mask = static_cast<int32_t>((uint32_t{1} << right[c]) - 1);
    const int32_t threshold = (mask >> 1) + (high_half < 0 ? 1 : 0);
    const int32_t rounded = (high_half >> right[c]) + ((high_half & mask) > threshold ? 1 : 0);
    // Limits before the zero point is added, so that the sum does not overflow.
    codes[c] = std::min(std::max(rounded, low), high) + zero;
  }
}

void SumScale::ConvertNarrow(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const {
  for (int64_t c = 0; c < count; ++c) {
    const int64_t rounded = rounding_ == Rounding::kExact
                                ? RoundAway(static_cast<double>(sums[c]) * factors_[first + c])
                                : MultiplyOnce(sums[c], {multipliers_[first + c], left_shifts_[first + c]});
    codes[c] = range_.Clamp(rounded + zero_point_);
  }
}

void SumScale::ConvertWide(const int64_t* sums, int64_t first, int64_t count, int32_t* codes) const {
  for (int64_t c = 0; c < count; ++c) {
    const int64_t rounded = rounding_ == Rounding::kExact
                                ? RoundAway(static_cast<double>(sums[c]) * factors_[first + c])
                                : MultiplyWide(sums[c], {multipliers_[first + c], left_shifts_[first + c]});
    codes[c] = range_.Clamp(std::clamp<int64_t>(rounded, kLowest32, kHighest32) + zero_point_);
  }
}

void SumScale::Convert(const void* sums, int64_t sum_stride, int64_t rows, int64_t first_channel, int64_t count,
                       void* output, int64_t output_stride) const {
  constexpr int64_t kPart = 64;  // Codes that are stored together.
  Multiversion([&]() PF_INLINE {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t begin = 0; begin < count; begin += kPart) {
        int32_t codes[kPart];
        const int64_t size = std::min(kPart, count - begin), from = r * sum_stride + begin;
        const int64_t first = first_channel + begin;
        if (is_wide_) {
          ConvertWide(static_cast<const int64_t*>(sums) + from, first, size, codes);
        } else if (rounding_ == Rounding::kTwice) {
          ConvertTwice(static_cast<const int32_t*>(sums) + from, first, size, codes);
        } else {
          ConvertNarrow(static_cast<const int32_t*>(sums) + from, first, size, codes);
        }
        const int64_t to = r * output_stride + begin;
        if (type_ == CodeType::kInt16) {
          auto* words = static_cast<int16_t*>(output) + to;
          for (int64_t c = 0; c < size; ++c) words[c] = static_cast<int16_t>(codes[c]);
        } else {
          auto* bytes = static_cast<uint8_t*>(output) + to;
          for (int64_t c = 0; c < size; ++c) bytes[c] = static_cast<uint8_t>(codes[c]);
        }
      }
    }
  });
}

absl::StatusOr<IntegerProduct> IntegerProduct::Make(const IntegerWeighting& weighting, const Depth& layout,
                                                    int64_t columns, int64_t column_step,
                                                    const IntegerProductTraits& traits) {
  IntegerProduct product;
  const auto is_size = [](int64_t size) { return size >= 0 && size <= kMostElements; };
  if (!is_size(layout.inputs) || !is_size(layout.taps_y) || !is_size(layout.taps_x) || !is_size(columns)) {
    return absl::InvalidArgumentError("a size of the matrix is negative or too large");
  }
  int64_t depth = 0, elements = 0;
  if (__builtin_mul_overflow(layout.taps_y, layout.taps_x, &depth) ||
      __builtin_mul_overflow(depth, layout.inputs, &depth) || __builtin_mul_overflow(depth, columns, &elements) ||
      !is_size(depth) || !is_size(elements)) {
    return absl::InvalidArgumentError("the matrix is too large");
  }
  const CodeType type = weighting.input.type;
  if (type == CodeType::kInt32) return absl::InvalidArgumentError("input: has type int32, expected 8 or 16 bits");
  const bool is_word = type == CodeType::kInt16;
  if (weighting.bias == BiasType::kInt64 && !is_word) {
    return absl::InvalidArgumentError(
        absl::StrCat("bias: has type int64, expected int32 for an input of ", NameOf(type)));
  }
  const bool is_wide = is_word && (traits.always_wide || weighting.bias != BiasType::kInt32);
  const bool is_unsigned = type == CodeType::kUint8;
  PF_ASSIGN_OR_RETURN(product.scale_, SumScale::Make(weighting, columns, is_wide, traits.float_product || is_unsigned));
  if (is_word && weighting.input.zero_point != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("input: zero point ", weighting.input.zero_point, " of int16, expected 0"));
  }
  const CodeRange weights = RangeOf(is_unsigned ? CodeType::kUint8 : CodeType::kInt8);
  if (weighting.filter_zero_point < weights.low || weighting.filter_zero_point > weights.high) {
    return absl::InvalidArgumentError(absl::StrCat("filter: zero point ", weighting.filter_zero_point, " is not in [",
                                                   weights.low, ", ", weights.high, "]"));
  }
  product.type_ = type;
  product.bias_ = weighting.bias;
  product.depth_ = depth;
  product.columns_ = columns;
  product.layout_ = layout;
  product.column_step_ = column_step;
  product.loops_ = traits.loops != nullptr ? traits.loops : is_word ? &BestWordLoops() : &BestByteLoops();
  const bool are_bytes = product.loops_->group == 4;
  product.input_zero_ = weighting.input.zero_point + (type == CodeType::kInt8 && are_bytes ? 128 : 0);
  product.filter_zero_ = weighting.filter_zero_point - (is_unsigned ? 128 : 0);
  const int64_t group = product.loops_->group, width = product.loops_->width;
  product.groups_ = (depth + group - 1) / group;
  product.padded_columns_ = (columns + width - 1) / width * width;
  product.row_bytes_ = Align(product.groups_ * 4);  // A group has 4 bytes, or 2 elements of int16.
  // A block of rows stays in the L1 cache (32 KB) along with a part of a panel.
  product.block_rows_ = std::clamp<int64_t>(
      (16 << 10) / std::max<int64_t>(product.row_bytes_, 1) / product.loops_->rows * product.loops_->rows,
      product.loops_->rows, 4 * product.loops_->rows);
  const int64_t sum_size = is_wide ? 8 : 4;
  product.packed_size_ =
      Align(product.padded_columns_ * sum_size) + Align(product.padded_columns_ * product.groups_ * group);
  product.scratch_size_ = kAlignment + product.block_rows_ * product.row_bytes_ + Align(product.block_rows_ * 4) +
                          Align(product.block_rows_ * width * sum_size) + Align(depth * BytesOf(type)) +
                          (is_wide ? Align(product.block_rows_ * width * 4) : 0);
  return product;
}

void IntegerProduct::Pack(const void* right, const void* bias, char* packed) const {
  const int64_t sum_size = scale_.is_wide() ? 8 : 4;
  const int64_t group = loops_->group, width = loops_->width;
  const uint8_t flipped = type_ == CodeType::kUint8 ? 0x80 : 0;
  const auto* codes = static_cast<const uint8_t*>(right);
  char* weights = packed + Align(padded_columns_ * sum_size);
  // Rows of int16 have their zero point subtracted.
  const int64_t input_zero = group == 4 ? input_zero_ : 0;
  for (int64_t panel = 0; panel < padded_columns_; panel += width, weights += groups_ * group * width) {
    int64_t sums[kMaxPanelWidth] = {};
    const int64_t count = std::min(width, columns_ - panel);
    if (count < width || depth_ % group != 0) std::memset(weights, 0, static_cast<size_t>(groups_ * group * width));
    int64_t k = 0;
    for (int64_t tap = 0; tap < layout_.taps_y * layout_.taps_x; ++tap) {
      const uint8_t* tap_codes = codes + tap / layout_.taps_x * layout_.tap_y_step +
                                 tap % layout_.taps_x * layout_.tap_x_step + panel * column_step_;
      for (int64_t i = 0; i < layout_.inputs; ++i, ++k) {
        char* to = weights + k / group * width * group + k % group;
        const uint8_t* from = tap_codes + i * layout_.input_step;
        for (int64_t j = 0; j < count; ++j) {
          const auto weight = static_cast<int8_t>(from[j * column_step_] ^ flipped);
          sums[j] += weight;
          to[j * group] = static_cast<char>(weight);
        }
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      int64_t start = 0;
      if (j < count) {
        // Modulo 2^64 for a bias near its limits.
        start = static_cast<int64_t>(static_cast<uint64_t>(BiasAt(bias_, bias, panel + j)) +
                                     static_cast<uint64_t>(depth_ * input_zero * filter_zero_ - input_zero * sums[j]));
      }
      if (scale_.is_wide()) {
        std::memcpy(packed + (panel + j) * 8, &start, 8);
      } else {
        const auto narrow = static_cast<int32_t>(start);
        std::memcpy(packed + (panel + j) * 4, &narrow, 4);
      }
    }
  }
}

PF_INLINE inline void IntegerProduct::PrepareRow(const void* codes, char* row, int32_t* sum) const {
  const int64_t depth = depth_;
  const bool has_sum = filter_zero_ != 0;
  uint32_t total = 0;
  if (loops_->group == 4) {
    const auto* from = static_cast<const uint8_t*>(codes);
    auto* to = reinterpret_cast<uint8_t*>(row);
    const uint8_t flipped = type_ == CodeType::kInt8 ? 0x80 : 0;
    for (int64_t k = 0; k < depth; ++k) to[k] = from[k] ^ flipped;
    for (int64_t k = depth; k < groups_ * 4; ++k) to[k] = 0;
    if (has_sum) {
      for (int64_t k = 0; k < depth; ++k) total += to[k];
    }
  } else {
    auto* to = reinterpret_cast<int16_t*>(row);
    const auto zero = static_cast<int16_t>(input_zero_);
    const auto widen = [&](const auto* from) PF_INLINE {
      for (int64_t k = 0; k < depth; ++k) to[k] = static_cast<int16_t>(from[k] - zero);
    };
    if (type_ == CodeType::kInt8) {
      widen(static_cast<const int8_t*>(codes));
    } else if (type_ == CodeType::kUint8) {
      widen(static_cast<const uint8_t*>(codes));
    } else {
      widen(static_cast<const int16_t*>(codes));  // The zero point is 0.
    }
    if (depth % 2 != 0) to[depth] = 0;
    if (has_sum) {
      for (int64_t k = 0; k < depth; ++k) total += static_cast<uint32_t>(int32_t{to[k]});
    }
  }
  *sum = static_cast<int32_t>(total);
}

void IntegerProduct::MultiplyWidePanel(const char* rows, int64_t count, const int8_t* weights, const int64_t* start,
                                       int32_t* part, int64_t* sums) const {
  static constexpr int32_t kZeros[kMaxPanelWidth] = {};
  const int64_t width = loops_->width;
  for (int64_t r = 0; r < count; ++r) std::copy_n(start, width, sums + r * width);
  for (int64_t g = 0; g < groups_; g += kGroupsInSum) {
    loops_->multiply(count, rows + g * 4, row_bytes_, weights + g * 2 * width, std::min(kGroupsInSum, groups_ - g),
                     kZeros, part);
    for (int64_t i = 0; i < count * width; ++i) sums[i] += part[i];
  }
}

void IntegerProduct::ComputeRows(RowOf row_of, const char* packed, int64_t first, int64_t last, char* scratch,
                                 void* output, int64_t output_stride) const {
  const bool is_wide = scale_.is_wide();
  const int64_t sum_size = is_wide ? 8 : 4, width = loops_->width, output_size = BytesOf(scale_.type());
  char* rows = scratch + (kAlignment - reinterpret_cast<uintptr_t>(scratch) % kAlignment) % kAlignment;
  auto* row_sums = reinterpret_cast<int32_t*>(rows + block_rows_ * row_bytes_);
  char* sums = reinterpret_cast<char*>(row_sums) + Align(block_rows_ * 4);
  char* codes = sums + Align(block_rows_ * width * sum_size);
  auto* part = reinterpret_cast<int32_t*>(codes + Align(depth_ * BytesOf(type_)));
  const auto* all_weights = reinterpret_cast<const int8_t*>(packed + Align(padded_columns_ * sum_size));
  for (int64_t row = first; row < last; row += block_rows_) {
    const int64_t count = std::min(block_rows_, last - row);
    Multiversion([&]() PF_INLINE {
      for (int64_t r = 0; r < count; ++r) PrepareRow(row_of(row + r, codes), rows + r * row_bytes_, row_sums + r);
    });
    for (int64_t panel = 0; panel < columns_; panel += width) {
      const int8_t* weights = all_weights + panel * groups_ * loops_->group;
      const int64_t columns = std::min(width, columns_ - panel);
      if (is_wide) {
        MultiplyWidePanel(rows, count, weights, reinterpret_cast<const int64_t*>(packed) + panel, part,
                          reinterpret_cast<int64_t*>(sums));
      } else {
        loops_->multiply(count, rows, row_bytes_, weights, groups_, reinterpret_cast<const int32_t*>(packed) + panel,
                         reinterpret_cast<int32_t*>(sums));
      }
      if (filter_zero_ != 0) {
        for (int64_t r = 0; r < count; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            if (is_wide) {
              reinterpret_cast<int64_t*>(sums)[r * width + c] -= int64_t{filter_zero_} * row_sums[r];
            } else {
              int32_t& sum = reinterpret_cast<int32_t*>(sums)[r * width + c];
              sum = WrapSubtract(sum, WrapMultiply(filter_zero_, row_sums[r]));
            }
          }
        }
      }
      scale_.Convert(sums, width, count, panel, columns,
                     static_cast<char*>(output) + (row * output_stride + panel) * output_size, output_stride);
    }
  }
}

void IntegerProduct::Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                             void* output) const {
  const int64_t row_size = depth_ * BytesOf(type_);
  ComputeRows([&](int64_t row, char*) -> const void* { return static_cast<const char*>(input) + row * row_size; },
              packed, first, last, scratch, output, columns_);
}

absl::StatusOr<IntegerMatrixProduct> IntegerMatrixProduct::Make(const Affine& left, const Affine& right,
                                                                const Affine& output, const Sizes& sizes,
                                                                Rounding rounding) {
  PF_RETURN_IF_ERROR(CheckAffine(right, "right matrix"));
  if (left.type != right.type || output.type != left.type) {
    return absl::InvalidArgumentError(absl::StrCat("the matrices have the types ", NameOf(left.type), " and ",
                                                   NameOf(right.type), ", the output ", NameOf(output.type)));
  }
  IntegerMatrixProduct made;
  made.sizes_ = sizes;
  made.type_ = left.type;
  made.left_zero_ = left.zero_point;
  made.right_zero_ = right.zero_point;
  IntegerWeighting weighting;
  weighting.input = left;
  weighting.output = output;
  weighting.filter_scales = {&right.scale, 1};
  weighting.filter_zero_point = right.zero_point;
  weighting.rounding = rounding;
  if (left.type != CodeType::kInt16) {
    const IntegerProduct::Depth depth = {sizes.depth, sizes.transpose_right ? 1 : sizes.columns};
    IntegerProductTraits traits;
    traits.float_product = true;
    PF_ASSIGN_OR_RETURN(made.product_, IntegerProduct::Make(weighting, depth, sizes.columns,
                                                            sizes.transpose_right ? sizes.depth : 1, traits));
    made.packed_size_ = made.product_.packed_size();
    made.scratch_size_ = made.product_.scratch_size();
    return made;
  }
  if (left.zero_point != 0 || right.zero_point != 0) {
    return absl::InvalidArgumentError("a matrix of int16 has a zero point other than 0");
  }
  PF_ASSIGN_OR_RETURN(made.scale_, SumScale::Make(weighting, sizes.columns, /*is_wide=*/true, /*float_product=*/true));
  if (sizes.depth < 0 || sizes.columns < 0 || sizes.depth > kMostElements || sizes.columns > kMostElements ||
      (sizes.columns > 0 && sizes.depth > kMostElements / sizes.columns)) {
    return absl::InvalidArgumentError("the right matrix is too large");
  }
  made.packed_size_ = sizes.depth * sizes.columns * 2;
  made.scratch_size_ = sizes.columns * 8;
  return made;
}

void IntegerMatrixProduct::Pack(const void* right, char* packed) const {
  if (type_ != CodeType::kInt16) return product_.Pack(right, nullptr, packed);
  auto* to = reinterpret_cast<int16_t*>(packed);
  const auto* from = static_cast<const int16_t*>(right);
  if (!sizes_.transpose_right) {
    std::copy_n(from, sizes_.depth * sizes_.columns, to);
    return;
  }
  for (int64_t k = 0; k < sizes_.depth; ++k) {
    for (int64_t c = 0; c < sizes_.columns; ++c) to[k * sizes_.columns + c] = from[c * sizes_.depth + k];
  }
}

void IntegerMatrixProduct::Compute(const void* left, const char* packed, int64_t first, int64_t last, char* scratch,
                                   void* output) const {
  if (type_ != CodeType::kInt16) {
    if (!sizes_.transpose_left) return product_.Compute(left, packed, first, last, scratch, output);
    const auto* codes = static_cast<const uint8_t*>(left);
    product_.ComputeRows(
        [&](int64_t row, char* buffer) -> const void* {
          for (int64_t k = 0; k < sizes_.depth; ++k) buffer[k] = static_cast<char>(codes[k * sizes_.rows + row]);
          return buffer;
        },
        packed, first, last, scratch, output, sizes_.columns);
    return;
  }
  auto* sums = reinterpret_cast<int64_t*>(scratch);
  const auto *a = static_cast<const int16_t*>(left), *b = reinterpret_cast<const int16_t*>(packed);
  const int64_t columns = sizes_.columns, output_size = BytesOf(scale_.type());
  for (int64_t row = first; row < last; ++row) {
    std::fill_n(sums, columns, int64_t{0});
    for (int64_t k = 0; k < sizes_.depth; ++k) {
      const int32_t factor = sizes_.transpose_left ? a[k * sizes_.rows + row] : a[row * sizes_.depth + k];
      for (int64_t c = 0; c < columns; ++c) sums[c] += factor * b[k * columns + c];
    }
    scale_.Convert(sums, columns, 1, 0, columns, static_cast<char*>(output) + row * columns * output_size, columns);
  }
}

}  // namespace permafrost

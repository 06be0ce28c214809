// Implements products of matrices of codes.
//
// Where ProductTiles exist, rows of bytes are multiplied as unsigned bytes (code + 128 for int8); else as int16 after
// their zero point is subtracted. Weights are int8 (code - 128 for uint8). With a and w as they are multiplied, and za
// and zw their zero points,
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
#include "runtime_check/threads/cancellation.h"

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

// Writes `count` adjacent weights of a column of a panel for ProductTiles, from depth k on. Returns their sum.
int64_t PackColumn(int64_t count, const uint8_t* from, uint8_t flipped, int64_t k, char* column) {
  constexpr int64_t kGroup = 4, kGroupStep = kGroup * kTileColumns;
  int64_t sum = 0, i = 0;
  const auto pack_one = [&] {
    const auto weight = static_cast<int8_t>(from[i] ^ flipped);
    sum += weight;
    column[(k + i) / kGroup * kGroupStep + (k + i) % kGroup] = static_cast<char>(weight);
    ++i;
  };
  while (i < count && (k + i) % kGroup != 0) pack_one();
  char* to = column + (k + i) / kGroup * kGroupStep;
  for (; i + kGroup <= count; i += kGroup, to += kGroupStep) {
    int8_t weights[kGroup];
    for (int64_t w = 0; w < kGroup; ++w) weights[w] = static_cast<int8_t>(from[i + w] ^ flipped);
    sum += weights[0] + weights[1] + weights[2] + weights[3];
    std::memcpy(to, weights, kGroup);
  }
  while (i < count) pack_one();
  return sum;
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

PF_INLINE inline void SumScale::ConvertExact(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const {
  const double low = range_.low - zero_point_, high = range_.high - zero_point_;
  const double* factors = factors_.data() + first;
  for (int64_t c = 0; c < count; ++c) {
    // RoundAway after the limits, which are integers.
    const double limited = std::min(std::max(static_cast<double>(sums[c]) * factors[c], low), high);
    const auto whole = static_cast<int32_t>(limited);
    const double rest = limited - whole;
    codes[c] = whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0) + zero_point_;
  }
}

void SumScale::ConvertNarrow(const int32_t* sums, int64_t first, int64_t count, int32_t* codes) const {
  for (int64_t c = 0; c < count; ++c) {
    const int64_t rounded = MultiplyOnce(sums[c], {multipliers_[first + c], left_shifts_[first + c]});
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
        } else if (rounding_ == Rounding::kExact) {
          ConvertExact(static_cast<const int32_t*>(sums) + from, first, size, codes);
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

ByteConversion SumScale::ToBytes() const {
  const bool is_unsigned = type_ == CodeType::kUint8;
  const int32_t offset = is_unsigned ? 128 : 0;
  ByteConversion conversion;
  conversion.zero_point = zero_point_ - offset;
  conversion.low = static_cast<int8_t>(range_.low - offset);
  conversion.high = static_cast<int8_t>(range_.high - offset);
  conversion.flip = is_unsigned ? 0x80 : 0;
  return conversion;
}

std::vector<ConversionBlock> SumScale::TwiceBlocks(int64_t count,
                                                   absl::FunctionRef<int64_t(int64_t)> channel_at) const {
  if (is_wide_ || rounding_ != Rounding::kTwice || BytesOf(type_) != 1) return {};
  std::vector<ConversionBlock> blocks(static_cast<size_t>(count / kBlockChannels));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t channel = channel_at(i);
    const int32_t multiplier = channel < 0 ? 0 : multipliers_[channel];
    int32_t right = channel < 0 ? 1 : right_shifts_[channel];
    if (multiplier == 0) right = 1;  // Any shift gives 0.
    if (right < 1 || right > 31 || (channel >= 0 && left_shifts_[channel] != 0)) return {};
    ConversionBlock& block = blocks[i / kBlockChannels];
    const int64_t lane = i % kBlockChannels;
    block.multipliers[lane] = multiplier;
    (lane % 2 == 0 ? block.even_addends : block.odd_addends)[lane / 2] =
        (int64_t{1} << 30) + (int64_t{1} << (30 + right));
    (lane % 2 == 0 ? block.even_shifts : block.odd_shifts)[lane / 2] = 31 + right;
  }
  return blocks;
}

std::vector<FactorBlock> SumScale::FactorBlocks() const {
  if (is_wide_ || rounding_ != Rounding::kExact || BytesOf(type_) != 1) return {};
  std::vector<FactorBlock> blocks((factors_.size() + kBlockChannels - 1) / kBlockChannels);
  for (size_t c = 0; c < factors_.size(); ++c) blocks[c / kBlockChannels].factors[c % kBlockChannels] = factors_[c];
  return blocks;
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
  product.loops_ = traits.loops != nullptr ? traits.loops : &BestIntegerLoops();
  if (traits.loops == nullptr && HasTiles(weighting)) {
    product.tiles_ = SupportedProductTiles();
    const int64_t padded = (columns + kBlockChannels - 1) / kBlockChannels * kBlockChannels;
    product.twice_blocks_ = product.scale_.TwiceBlocks(padded, [&](int64_t i) { return i < columns ? i : -1; });
    product.factor_blocks_ = product.scale_.FactorBlocks();
  }
  const bool is_tiled = product.tiles_ != nullptr;
  product.input_zero_ = weighting.input.zero_point + (type == CodeType::kInt8 && is_tiled ? 128 : 0);
  product.filter_zero_ = weighting.filter_zero_point - (is_unsigned ? 128 : 0);
  const int64_t group = is_tiled ? 4 : 2, width = is_tiled ? kTileColumns : product.loops_->width;
  const int64_t rows = is_tiled ? kMostTileRows : product.loops_->rows;
  product.group_ = group;
  product.width_ = width;
  const int64_t taps = layout.taps_y * layout.taps_x;
  const int64_t segment_taps = layout.segment_taps > 0 ? layout.segment_taps : std::max<int64_t>(taps, 1);
  if (taps % segment_taps != 0 || (segment_taps != taps && taps > 0 && !is_tiled)) {
    return absl::InvalidArgumentError("the taps are not divided into segments");
  }
  product.num_segments_ = std::max<int64_t>(taps / segment_taps, 1);
  product.segment_depth_ = taps == 0 ? 0 : segment_taps * layout.inputs;
  product.segment_groups_ = (product.segment_depth_ + group - 1) / group;
  product.groups_ = product.num_segments_ * product.segment_groups_;
  product.padded_columns_ = (columns + width - 1) / width * width;
  product.row_bytes_ = Align(product.groups_ * 4);  // A group has 4 bytes, or 2 elements of int16.
  // A block of rows stays in the L1 cache (32 KB) along with a part of a panel.
  product.block_rows_ =
      std::clamp<int64_t>((16 << 10) / std::max<int64_t>(product.row_bytes_, 1) / rows * rows, rows, 4 * rows);
  const int64_t sum_size = is_wide ? 8 : 4;
  product.packed_size_ =
      Align(product.padded_columns_ * sum_size) + Align(product.padded_columns_ * product.groups_ * group);
  if (is_tiled) {
    product.scratch_size_ = kAlignment + product.block_rows_ * product.row_bytes_;
    return product;
  }
  product.scratch_size_ = kAlignment + product.block_rows_ * product.row_bytes_ + Align(product.block_rows_ * 4) +
                          Align(product.block_rows_ * width * sum_size) + Align(depth * BytesOf(type)) +
                          (is_wide ? Align(product.block_rows_ * width * 4) : 0);
  return product;
}

void IntegerProduct::Pack(const void* right, const void* bias, char* packed) const {
  const int64_t sum_size = scale_.is_wide() ? 8 : 4;
  const int64_t group = group_, width = width_;
  const uint8_t flipped = type_ == CodeType::kUint8 ? 0x80 : 0;
  const auto* codes = static_cast<const uint8_t*>(right);
  char* weights = packed + Align(padded_columns_ * sum_size);
  // Rows of int16 have their zero point subtracted.
  const int64_t input_zero = tiles_ != nullptr ? input_zero_ : 0;
  const int64_t segment = std::max<int64_t>(segment_groups_ * group, 1);
  for (int64_t panel = 0; panel < padded_columns_; panel += width, weights += groups_ * group * width) {
    int64_t sums[kMaxPanelWidth] = {};
    const int64_t count = std::min(width, columns_ - panel);
    if (count < width || segment_depth_ % group != 0)
      std::memset(weights, 0, static_cast<size_t>(groups_ * group * width));
    int64_t k = 0;
    for (int64_t tap = 0; tap < layout_.taps_y * layout_.taps_x; ++tap) {
      // Segments start with a group of their own.
      if (k % segment == segment_depth_) k += segment - segment_depth_;
      const uint8_t* tap_codes = codes + tap / layout_.taps_x * layout_.tap_y_step +
                                 tap % layout_.taps_x * layout_.tap_x_step + panel * column_step_;
      if (group == 4 && layout_.input_step == 1) {  // Depths of a column are adjacent.
        for (int64_t j = 0; j < count; ++j) {
          sums[j] += PackColumn(layout_.inputs, tap_codes + j * column_step_, flipped, k, weights + j * group);
        }
        k += layout_.inputs;
        continue;
      }
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
  uint32_t total = 0;
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
  if (filter_zero_ != 0) {
    for (int64_t k = 0; k < depth; ++k) total += static_cast<uint32_t>(int32_t{to[k]});
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
                                 void* output, int64_t output_stride, const SumsSink* sink) const {
  const bool is_wide = scale_.is_wide();
  const int64_t sum_size = is_wide ? 8 : 4, width = loops_->width, output_size = BytesOf(scale_.type());
  char* rows = scratch + (kAlignment - reinterpret_cast<uintptr_t>(scratch) % kAlignment) % kAlignment;
  if (tiles_ != nullptr) {
    constexpr int64_t kSegment = 0;
    Lines lines;
    lines.rows = {reinterpret_cast<const uint8_t*>(rows), row_bytes_, &kSegment, 1};
    lines.row_output_step = output_stride * output_size;
    lines.sink = sink;
    for (int64_t row = first; row < last; row += block_rows_) {
      lines.first_row = row;
      lines.rows_per_line = std::min(block_rows_, last - row);
      for (int64_t r = 0; r < lines.rows_per_line; ++r) {
        char* to = rows + r * row_bytes_;
        const void* from = row_of(row + r, to);
        if (from != to) std::memcpy(to, from, static_cast<size_t>(depth_));
      }
      ComputeLines(lines, packed, sink != nullptr ? nullptr : static_cast<char*>(output) + row * lines.row_output_step);
    }
    return;
  }
  auto* row_sums = reinterpret_cast<int32_t*>(rows + block_rows_ * row_bytes_);
  char* sums = reinterpret_cast<char*>(row_sums) + Align(block_rows_ * 4);
  char* codes = sums + Align(block_rows_ * width * sum_size);
  auto* part = reinterpret_cast<int32_t*>(codes + Align(depth_ * BytesOf(type_)));
  const auto* all_weights = reinterpret_cast<const int8_t*>(packed + Align(padded_columns_ * sum_size));
  for (int64_t row = first; row < last && !RunIsCancelled(); row += block_rows_) {
    const int64_t count = std::min(block_rows_, last - row);
    Multiversion([&]() PF_INLINE {
      for (int64_t r = 0; r < count; ++r) PrepareRow(row_of(row + r, codes), rows + r * row_bytes_, row_sums + r);
    });
    for (int64_t panel = 0; panel < columns_; panel += width) {
      const int8_t* weights = all_weights + panel * groups_ * group_;
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
      if (sink != nullptr) {
        (*sink)(row, count, panel, columns, width, reinterpret_cast<const int32_t*>(sums));
        continue;
      }
      scale_.Convert(sums, width, count, panel, columns,
                     static_cast<char*>(output) + (row * output_stride + panel) * output_size, output_stride);
    }
  }
}

void IntegerProduct::ComputeLines(Lines lines, const char* packed, void* output) const {
  alignas(kAlignment) int32_t sums[kMostTileRows * kTileColumns];
  const uint8_t* first = lines.rows.first;
  lines.rows.segment_groups = segment_groups_;
  lines.rows.flip = type_ == CodeType::kInt8 ? 0x80 : 0;
  ByteConversion conversion = scale_.ToBytes();
  conversion.twice = twice_blocks_.empty() ? nullptr : twice_blocks_.data();
  conversion.exact = factor_blocks_.empty() ? nullptr : factor_blocks_.data();
  const bool has_blocks = conversion.twice != nullptr || conversion.exact != nullptr;
  const auto* all_weights = reinterpret_cast<const int8_t*>(packed + Align(padded_columns_ * 4));
  for (int64_t panel = 0; panel < columns_; panel += kTileColumns) {
    const int8_t* weights = all_weights + panel * groups_ * 4;
    const auto* start = reinterpret_cast<const int32_t*>(packed) + panel;
    const int64_t columns = std::min<int64_t>(kTileColumns, columns_ - panel);
    for (int64_t line = 0; line < lines.lines; ++line) {
      uint8_t* to = static_cast<uint8_t*>(output) + line * lines.line_output_step + panel;
      for (int64_t row = 0; row < lines.rows_per_line; row += kMostTileRows) {
        const int64_t count = std::min<int64_t>(kMostTileRows, lines.rows_per_line - row);
        lines.rows.first = first + line * lines.line_step + row * lines.rows.step;
        tiles_->multiply(count, lines.rows, weights, columns, start, sums);
        if (filter_zero_ != 0) SubtractRowSums(lines.rows, count, sums);
        if (lines.sink != nullptr) {
          (*lines.sink)(lines.first_row + line * lines.rows_per_line + row, count, lines.first_channel + panel, columns,
                        kTileColumns, sums);
          continue;
        }
        uint8_t* tile = to + row * lines.row_output_step;
        if (has_blocks) {
          tiles_->convert(conversion, panel / kBlockChannels, sums, count, columns, tile, lines.row_output_step);
        } else {
          scale_.Convert(sums, kTileColumns, count, panel, columns, tile, lines.row_output_step);
        }
      }
    }
  }
}

void IntegerProduct::SubtractRowSums(const ByteRows& rows, int64_t count, int32_t* sums) const {
  Multiversion([&]() PF_INLINE {
    for (int64_t r = 0; r < count; ++r) {
      uint32_t total = 0;
      for (int64_t s = 0; s < rows.num_segments; ++s) {
        const uint8_t* codes = rows.first + r * rows.step + rows.segments[s];
        for (int64_t k = 0; k < segment_depth_; ++k) total += codes[k] ^ rows.flip;
      }
      const int32_t product = WrapMultiply(filter_zero_, static_cast<int32_t>(total));
      for (int64_t c = 0; c < kTileColumns; ++c) {
        sums[r * kTileColumns + c] = WrapSubtract(sums[r * kTileColumns + c], product);
      }
    }
  });
}

void IntegerProduct::Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                             void* output) const {
  ComputeContiguous(input, packed, first, last, scratch, output, nullptr);
}

void IntegerProduct::ComputeSums(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                                 SumsSink sink) const {
  ComputeContiguous(input, packed, first, last, scratch, nullptr, &sink);
}

void IntegerProduct::ComputeContiguous(const void* input, const char* packed, int64_t first, int64_t last,
                                       char* scratch, void* output, const SumsSink* sink) const {
  const int64_t row_size = depth_ * BytesOf(type_);
  if (tiles_ != nullptr) {
    // Rows that are read where they lie: those whose last group ends before the last row does.
    constexpr int64_t kSegment = 0, kBlockRows = 8 * kMostTileRows;
    const int64_t direct =
        row_size % 4 == 0 ? last : std::max(first, last - (groups_ * 4 + row_size - 1) / row_size + 1);
    Lines lines;
    lines.rows = {nullptr, row_size, &kSegment, 1};
    lines.row_output_step = columns_;
    lines.sink = sink;
    for (; first < direct; first += lines.rows_per_line) {
      lines.first_row = first;
      lines.rows_per_line = std::min(kBlockRows, direct - first);
      lines.rows.first = static_cast<const uint8_t*>(input) + first * row_size;
      ComputeLines(lines, packed, sink != nullptr ? nullptr : static_cast<uint8_t*>(output) + first * columns_);
    }
  }
  ComputeRows([&](int64_t row, char*) -> const void* { return static_cast<const char*>(input) + row * row_size; },
              packed, first, last, scratch, output, columns_, sink);
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
  for (int64_t row = first; row < last && !RunIsCancelled(); ++row) {
    std::fill_n(sums, columns, int64_t{0});
    for (int64_t k = 0; k < sizes_.depth; ++k) {
      const int32_t factor = sizes_.transpose_left ? a[k * sizes_.rows + row] : a[row * sizes_.depth + k];
      for (int64_t c = 0; c < columns; ++c) sums[c] += factor * b[k * columns + c];
    }
    scale_.Convert(sums, columns, 1, 0, columns, static_cast<char*>(output) + row * columns * output_size, columns);
  }
}

}  // namespace permafrost

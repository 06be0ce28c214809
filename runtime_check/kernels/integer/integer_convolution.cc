// Implements convolutions of codes as products of windows and packed filters, but for depthwise ones. Windows are read
// where they lie in the image, or in a strip of its lines with padding; or they are gathered.
#include "runtime_check/kernels/integer/integer_convolution.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr int64_t kAlignment = 64;  // Of the parts of packed memory: a cache line.

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sizes and positions along an axis stay below this, so that products of two fit in int64_t.
constexpr int64_t kMostPositions = int64_t{1} << 31;

absl::Status CheckAxis(const WindowAxis& axis, const char* name) {
  const auto is_within = [](int64_t low, int64_t value) { return value >= low && value <= kMostPositions; };
  if (is_within(0, axis.input) && is_within(0, axis.output) && is_within(1, axis.taps) && is_within(1, axis.stride) &&
      is_within(1, axis.dilation) && is_within(-kMostPositions, axis.pad_before)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the window has an impossible size along ", name));
}

// Returns OK if no offset into the input, filter or output overflows.
absl::Status CheckSizes(const ConvolutionSizes& sizes, int64_t groups) {
  PF_RETURN_IF_ERROR(CheckAxis(sizes.window.y, "y"));
  PF_RETURN_IF_ERROR(CheckAxis(sizes.window.x, "x"));
  if (sizes.batch < 0 || sizes.input_channels < 1 || sizes.output_channels < 1 || groups < 1 ||
      sizes.input_channels % groups != 0 || sizes.output_channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a convolution of ", sizes.input_channels, " to ",
                                                   sizes.output_channels, " channels in ", groups,
                                                   " groups is impossible"));
  }
  const WindowAxis &y = sizes.window.y, &x = sizes.window.x;
  const int64_t products[][4] = {{sizes.batch, y.input, x.input, sizes.input_channels},
                                 {sizes.batch, y.output, x.output, sizes.output_channels},
                                 {sizes.input_channels, y.taps, x.taps, sizes.output_channels}};
  for (const auto& factors : products) {
    int64_t product = 8;  // Bytes of the widest element.
    for (const int64_t factor : factors) {
      if (__builtin_mul_overflow(product, std::max<int64_t>(factor, 1), &product)) {
        return absl::InvalidArgumentError("an operand of the convolution is too large");
      }
    }
  }
  return absl::OkStatus();
}

// The zero point as the byte of a code. Codes of int16 have zero point 0.
int ZeroByte(const Affine& input) { return static_cast<uint8_t>(input.zero_point); }

// Returns a weighting of `count` output channels from the first on.
IntegerWeighting Slice(IntegerWeighting weighting, int64_t first, int64_t count) {
  if (weighting.filter_scales.size() > 1) {
    weighting.filter_scales = weighting.filter_scales.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  }
  return weighting;
}

// int8 and int16 have filters without zero point.
absl::Status CheckFilterZero(const IntegerWeighting& weighting) {
  if (weighting.filter_zero_point == 0 || weighting.input.type == CodeType::kUint8) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("filter: zero point ", weighting.filter_zero_point,
                                                 ", expected 0 for an input of ", NameOf(weighting.input.type)));
}

// Padded lines of an image that a thread works on stay in half of the L1 cache (32 KB) where the image allows it.
constexpr int64_t kStripBytes = 16 << 10;
// Strips beyond this number of bytes are not made: only dilations and strides that skip most of the image need them.
constexpr int64_t kMostStripBytes = 4 << 20;

// The distance from the first pixel of a line of windows to the end of the last one. REQUIRES: axis.output > 0.
double SpanOf(const WindowAxis& axis, int64_t outputs) {
  return static_cast<double>(outputs - 1) * static_cast<double>(axis.stride) +
         static_cast<double>(axis.taps - 1) * static_cast<double>(axis.dilation) + 1;
}

// Whether all taps are inside of the image.
bool IsInside(const WindowAxis& axis) {
  return axis.pad_before <= 0 &&
         SpanOf(axis, axis.output) - static_cast<double>(axis.pad_before) <= static_cast<double>(axis.input);
}

int64_t BytesOfBias(BiasType type) { return type == BiasType::kNone ? 0 : type == BiasType::kInt32 ? 4 : 8; }

const void* Advance(const void* values, int64_t bytes) {
  return values == nullptr ? nullptr : static_cast<const char*>(values) + bytes;
}

}  // namespace

FilterStrides ConvolutionSizes::OutputFirst() const {
  const int64_t inputs = input_channels / std::max<int64_t>(groups, 1);
  return {window.y.taps * window.x.taps * inputs, window.x.taps * inputs, inputs, 1};
}

FilterStrides ConvolutionSizes::OutputLast() const {
  const int64_t inputs = input_channels / std::max<int64_t>(groups, 1);
  return {1, window.x.taps * inputs * output_channels, inputs * output_channels, output_channels};
}

absl::StatusOr<IntegerConvolution> IntegerConvolution::Make(const IntegerWeighting& weighting,
                                                            const ConvolutionSizes& sizes,
                                                            const FilterStrides& filter) {
  PF_RETURN_IF_ERROR(CheckSizes(sizes, sizes.groups));
  PF_RETURN_IF_ERROR(CheckFilterZero(weighting));
  PF_RETURN_IF_ERROR(CheckScales(weighting.filter_scales, sizes.output_channels, "filter"));
  IntegerConvolution made;
  made.sizes_ = sizes;
  made.filter_ = filter;
  made.bias_ = weighting.bias;
  made.code_size_ = BytesOf(weighting.input.type);
  made.zero_byte_ = ZeroByte(weighting.input);
  const WindowAxis &y = sizes.window.y, &x = sizes.window.x;
  const int64_t inputs = sizes.input_channels / sizes.groups, columns = sizes.output_channels / sizes.groups;
  IntegerProduct::Depth depth;
  depth.inputs = inputs;
  depth.input_step = filter.input;
  depth.taps_y = y.taps;
  depth.tap_y_step = filter.row;
  depth.taps_x = x.taps;
  depth.tap_x_step = filter.column;
  made.rows_ = sizes.batch * y.output * x.output;
  made.is_pointwise_ = sizes.groups == 1 && y.taps == 1 && x.taps == 1 && y.stride == 1 && x.stride == 1 &&
                       y.pad_before == 0 && x.pad_before == 0 && y.input == y.output && x.input == x.output;
  if (!made.is_pointwise_ && made.rows_ > 0 && IntegerProduct::HasTiles(weighting)) {
    // Taps of a line are adjacent in images without dilation and groups; else each tap is a segment.
    const bool is_dense = sizes.groups == 1 && x.dilation == 1;
    const int64_t segment_taps = is_dense ? x.taps : 1, tail = segment_taps * inputs % 4;
    made.has_strips_ = tail != 0 || !IsInside(y) || !IsInside(x);
    const double width = made.has_strips_ ? SpanOf(x, x.output) : static_cast<double>(x.input);
    const double line_bytes = width * static_cast<double>(sizes.input_channels);
    made.is_direct_ = !made.has_strips_ || line_bytes * SpanOf(y, 1) <= static_cast<double>(kMostStripBytes);
    if (made.is_direct_) {
      depth.segment_taps = segment_taps;
      made.rows_ = sizes.batch * y.output;
      made.strip_width_ = static_cast<int64_t>(width);
      const double lines =
          1 + (static_cast<double>(kStripBytes) / line_bytes - SpanOf(y, 1)) / static_cast<double>(y.stride);
      made.strip_lines_ = std::clamp<int64_t>(static_cast<int64_t>(std::max(lines, 1.0)), 1, y.output);
      for (int64_t ty = 0; ty < y.taps; ++ty) {
        for (int64_t tx = 0; tx < x.taps; tx += segment_taps) {
          made.segments_.push_back((ty * y.dilation * made.strip_width_ + tx * x.dilation) * sizes.input_channels);
        }
      }
    }
  }
  for (int64_t g = 0; g < sizes.groups; ++g) {
    PF_ASSIGN_OR_RETURN(IntegerProduct product,
                        IntegerProduct::Make(Slice(weighting, g * columns, columns), depth, columns, filter.output));
    made.offsets_.push_back(made.packed_size_);
    made.packed_size_ += Align(product.packed_size());
    made.scratch_size_ = std::max(made.scratch_size_, product.scratch_size());
    made.products_.push_back(std::move(product));
  }
  if (made.has_strips_ && made.is_direct_) {
    const auto lines = static_cast<int64_t>(SpanOf(y, made.strip_lines_));
    // A segment's last group is read beyond the strip's end.
    made.scratch_size_ = Align(lines * made.strip_width_ * sizes.input_channels + 4);
  }
  return made;
}

void IntegerConvolution::Pack(const void* filter, const void* bias, char* packed) const {
  const int64_t columns = sizes_.output_channels / sizes_.groups;
  for (int64_t g = 0; g < sizes_.groups; ++g) {
    products_[g].Pack(Advance(filter, g * columns * filter_.output), Advance(bias, g * columns * BytesOfBias(bias_)),
                      packed + offsets_[g]);
  }
}

void IntegerConvolution::Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                                 void* output) const {
  ComputeWith(input, zero_byte_, packed, first, last, scratch, output, nullptr);
}

void IntegerConvolution::ComputeSums(const void* input, int8_t padding, const char* packed, int64_t first, int64_t last,
                                     char* scratch, IntegerProduct::SumsSink sink) const {
  ComputeWith(input, static_cast<uint8_t>(padding), packed, first, last, scratch, nullptr, &sink);
}

void IntegerConvolution::ComputeWith(const void* input, int zero_byte, const char* packed, int64_t first, int64_t last,
                                     char* scratch, void* output, const IntegerProduct::SumsSink* sink) const {
  if (is_pointwise_) {
    return sink != nullptr ? products_[0].ComputeSums(input, packed, first, last, scratch, *sink)
                           : products_[0].Compute(input, packed, first, last, scratch, output);
  }
  if (is_direct_) return ComputeDirect(input, zero_byte, packed, first, last, scratch, output, sink);
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t columns = sizes_.output_channels / sizes_.groups;
  const int64_t pixel_size = sizes_.input_channels * code_size_, tap_size = pixel_size / sizes_.groups;
  const bool is_dense = sizes_.groups == 1 && x.dilation == 1;  // Taps of a line are adjacent.
  for (int64_t g = 0; g < sizes_.groups; ++g) {
    const char* codes = static_cast<const char*>(input) + g * tap_size;
    const auto row_of = [&](int64_t row, char* buffer) -> const void* {
      const int64_t column = row % x.output, line = row / x.output % y.output, image = row / x.output / y.output;
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      x.TapsInside(column, &x_begin, &x_end);
      const bool is_inside = y_begin == 0 && y_end == y.taps && x_begin == 0 && x_end == x.taps;
      if (!is_inside) std::memset(buffer, zero_byte, static_cast<size_t>(y.taps * x.taps * tap_size));
      const char* from = codes + image * y.input * x.input * pixel_size;
      if (is_inside && y.taps * x.taps == 1) return from + (y.First(line) * x.input + x.First(column)) * pixel_size;
      for (int64_t ty = y_begin; ty < y_end; ++ty) {
        const int64_t pixel = (y.First(line) + ty * y.dilation) * x.input + x.First(column);
        char* to = buffer + ty * x.taps * tap_size;
        if (is_dense) {
          std::memcpy(to + x_begin * tap_size, from + (pixel + x_begin) * pixel_size,
                      static_cast<size_t>((x_end - x_begin) * tap_size));
        } else {
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            std::memcpy(to + tx * tap_size, from + (pixel + tx * x.dilation) * pixel_size,
                        static_cast<size_t>(tap_size));
          }
        }
      }
      return buffer;
    };
    if (sink == nullptr) {
      products_[g].ComputeRows(row_of, packed + offsets_[g], first, last, scratch,
                               static_cast<char*>(output) + g * columns * code_size_, sizes_.output_channels);
      continue;
    }
    const auto shifted = [&](int64_t row, int64_t count, int64_t channel, int64_t width, int64_t stride,
                             const int32_t* sums) { (*sink)(row, count, g * columns + channel, width, stride, sums); };
    const IntegerProduct::SumsSink group_sink = shifted;
    products_[g].ComputeRows(row_of, packed + offsets_[g], first, last, scratch, nullptr, 0, &group_sink);
  }
}

void IntegerConvolution::ComputeDirect(const void* input, int zero_byte, const char* packed, int64_t first,
                                       int64_t last, char* scratch, void* output,
                                       const IntegerProduct::SumsSink* sink) const {
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t pixel = sizes_.input_channels, channels = sizes_.output_channels;
  const int64_t inputs = pixel / sizes_.groups, columns = channels / sizes_.groups;
  const int64_t line_bytes = strip_width_ * pixel;
  // The pixels of a strip's line that are pixels of the image.
  const int64_t begin = std::clamp<int64_t>(x.pad_before, 0, strip_width_);
  const int64_t end = std::clamp<int64_t>(x.input + x.pad_before, begin, strip_width_);
  IntegerProduct::Lines lines;
  lines.rows.step = x.stride * pixel;
  lines.rows.segments = segments_.data();
  lines.rows.num_segments = static_cast<int64_t>(segments_.size());
  lines.line_step = y.stride * line_bytes;
  lines.rows_per_line = x.output;
  lines.row_output_step = channels;
  lines.line_output_step = x.output * channels;
  lines.sink = sink;
  while (first < last) {
    const int64_t image = first / y.output, line = first % y.output;
    lines.lines = std::min({strip_lines_, y.output - line, last - first});
    const auto* codes = static_cast<const uint8_t*>(input) + image * y.input * x.input * pixel;
    const uint8_t* from = codes + (y.First(line) * x.input + x.First(0)) * pixel;
    if (has_strips_) {
      auto* strip = reinterpret_cast<uint8_t*>(scratch);
      from = strip;
      const int64_t count = (lines.lines - 1) * y.stride + (y.taps - 1) * y.dilation + 1;
      for (int64_t i = 0; i < count; ++i, strip += line_bytes) {
        const int64_t in = y.First(line) + i;
        if (in < 0 || in >= y.input || begin == end) {
          std::memset(strip, zero_byte, static_cast<size_t>(line_bytes));
          continue;
        }
        std::memset(strip, zero_byte, static_cast<size_t>(begin * pixel));
        std::memcpy(strip + begin * pixel, codes + (in * x.input + begin - x.pad_before) * pixel,
                    static_cast<size_t>((end - begin) * pixel));
        std::memset(strip + end * pixel, zero_byte, static_cast<size_t>((strip_width_ - end) * pixel));
      }
      std::memset(strip, zero_byte, 4);
    }
    char* to = sink != nullptr ? nullptr : static_cast<char*>(output) + first * lines.line_output_step;
    lines.first_row = first * x.output;
    for (int64_t g = 0; g < sizes_.groups; ++g) {
      lines.rows.first = from + g * inputs;
      lines.first_channel = g * columns;
      products_[g].ComputeLines(lines, packed + offsets_[g], to == nullptr ? nullptr : to + g * columns);
    }
    first += lines.lines;
  }
}

absl::StatusOr<IntegerDepthwise> IntegerDepthwise::Make(const IntegerWeighting& weighting,
                                                        const ConvolutionSizes& sizes) {
  PF_RETURN_IF_ERROR(CheckSizes(sizes, sizes.input_channels));
  PF_RETURN_IF_ERROR(CheckFilterZero(weighting));
  const CodeType type = weighting.input.type;
  if (type == CodeType::kInt32 || weighting.output.type != type) {
    return absl::InvalidArgumentError(absl::StrCat("a depthwise convolution of ", NameOf(type), " to ",
                                                   NameOf(weighting.output.type), " has no integer form"));
  }
  const bool is_wide = type == CodeType::kInt16;
  if ((is_wide && weighting.input.zero_point != 0) || (!is_wide && weighting.bias == BiasType::kInt64)) {
    return absl::InvalidArgumentError("the input's zero point or the bias type does not fit the input's type");
  }
  IntegerDepthwise made;
  PF_ASSIGN_OR_RETURN(made.scale_, SumScale::Make(weighting, sizes.output_channels, is_wide, type == CodeType::kUint8));
  made.sizes_ = sizes;
  made.type_ = type;
  made.bias_ = weighting.bias;
  made.input_zero_ = weighting.input.zero_point;
  made.filter_zero_ = weighting.filter_zero_point;
  made.multiplier_ = sizes.output_channels / sizes.input_channels;
  made.rows_ = sizes.batch * sizes.window.y.output;
  const int64_t channels = sizes.output_channels, taps = sizes.window.y.taps * sizes.window.x.taps;
  // Lines of an input whose channels are repeated for each of their outputs.
  const WindowAxis& y = sizes.window.y;
  const double line_bytes = static_cast<double>(sizes.window.x.input) * static_cast<double>(channels);
  const double most_lines = std::min(static_cast<double>(kStripBytes) / std::max(line_bytes, 1.0), 1e6);
  const double strip = 1 + (most_lines - SpanOf(y, 1)) / static_cast<double>(y.stride);
  made.strip_lines_ = static_cast<int64_t>(std::max(strip, 1.0));
  const double strip_bytes = SpanOf(y, made.strip_lines_) * line_bytes;
  if (!is_wide && (made.multiplier_ == 1 || strip_bytes <= static_cast<double>(kMostStripBytes)) &&
      SupportedDepthwiseLoop() != nullptr) {
    made.padded_channels_ = (channels + kDepthwiseChannels - 1) / kDepthwiseChannels * kDepthwiseChannels;
    if (sizes.window.x.stride == 1 && channels > 0 && kDepthwiseChannels % channels == 0) {
      made.pixels_at_once_ = kDepthwiseChannels / channels;
    }
    made.blocks_ = made.scale_.TwiceBlocks(made.padded_channels_, [&](int64_t i) { return made.ChannelAt(i); });
  }
  if (!made.blocks_.empty()) {
    made.loop_ = SupportedDepthwiseLoop();
    // Codes less a zero point other than 128 need more than 8 bits.
    made.has_two_weights_ = type == CodeType::kUint8 && made.filter_zero_ != 128;
    made.tile_taps_ = ((made.has_two_weights_ ? 2 * taps : taps) + 3) / 4 * 4;
    made.packed_size_ = made.padded_channels_ * (4 + made.tile_taps_);
    made.scratch_size_ = Align(made.tile_taps_ * 16) + Align(channels);
    if (made.multiplier_ > 1) made.scratch_size_ += Align(static_cast<int64_t>(strip_bytes));
    return made;
  }
  const int64_t sums = Align(sizes.output_channels * (is_wide ? 8 : 4));
  made.packed_size_ = sums + sizes.window.y.taps * sizes.window.x.taps * sizes.output_channels * 2;
  made.scratch_size_ = sums;
  return made;
}

namespace {

// Writes each code `times` times.
void RepeatCodes(int64_t count, int64_t times, const uint8_t* from, uint8_t* to) {
  int64_t i = 0;
  if (times <= int64_t{sizeof(uint64_t)}) {
    // Stores a whole word; the next store overwrites the bytes beyond the repeated ones.
    const uint8_t* end = to + count * times;
    for (; end - to >= int64_t{sizeof(uint64_t)}; ++i, to += times) {
      const uint64_t word = from[i] * uint64_t{0x0101010101010101};
      std::memcpy(to, &word, sizeof(word));
    }
  }
  for (; i < count; ++i, to += times) std::memset(to, from[i], static_cast<size_t>(times));
}

}  // namespace

int64_t IntegerDepthwise::ChannelAt(int64_t position) const {
  const int64_t block = position / kDepthwiseChannels, lane = position % kDepthwiseChannels;
  const int64_t c = block * kDepthwiseChannels + DepthwiseChannelAt(static_cast<int>(lane));
  if (pixels_at_once_ > 1) return c % sizes_.output_channels;
  return c < sizes_.output_channels ? c : -1;
}

void IntegerDepthwise::PackTiles(const void* filter, const void* bias, char* packed) const {
  const int64_t channels = sizes_.output_channels, taps = sizes_.window.y.taps * sizes_.window.x.taps;
  auto* starts = reinterpret_cast<int32_t*>(packed);
  auto* weights = reinterpret_cast<int8_t*>(packed + padded_channels_ * 4);
  std::memset(packed, 0, static_cast<size_t>(packed_size_));
  // Bytes are multiplied as unsigned ones.
  const int32_t input_zero = input_zero_ + (type_ == CodeType::kInt8 ? 128 : 0);
  for (int64_t position = 0; position < padded_channels_; ++position) {
    const int64_t block = position / kDepthwiseChannels, lane = position % kDepthwiseChannels;
    const int64_t c = ChannelAt(position);
    if (c < 0) continue;
    int32_t sum = 0;
    const auto set = [&](int64_t tap, int32_t weight) {
      sum = WrapAdd(sum, weight);
      weights[block * kDepthwiseChannels * tile_taps_ + tap / 4 * 4 * kDepthwiseChannels + lane * 4 + tap % 4] =
          static_cast<int8_t>(weight);
    };
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t i = tap * channels + c;
      const int32_t weight = (type_ == CodeType::kUint8 ? int32_t{static_cast<const uint8_t*>(filter)[i]}
                                                        : int32_t{static_cast<const int8_t*>(filter)[i]}) -
                             filter_zero_;
      const int32_t first = std::clamp(weight, -128, 127);
      set(tap, first);
      if (has_two_weights_) set(taps + tap, weight - first);
    }
    const int32_t start = bias == nullptr || bias_ == BiasType::kNone ? 0 : static_cast<const int32_t*>(bias)[c];
    starts[position] = WrapSubtract(start, WrapMultiply(input_zero, sum));
  }
}

void IntegerDepthwise::ComputeTiles(const uint8_t* input, const char* packed, int64_t first, int64_t last,
                                    char* scratch, uint8_t* output) const {
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t channels = sizes_.output_channels;
  auto* addresses = reinterpret_cast<const uint8_t**>(scratch);
  auto* steps = reinterpret_cast<int64_t*>(addresses + tile_taps_);
  auto* zeros = reinterpret_cast<uint8_t*>(scratch + Align(tile_taps_ * 16));
  std::memset(zeros, static_cast<uint8_t>(input_zero_), static_cast<size_t>(channels * pixels_at_once_));
  DepthwiseLine line;
  line.taps = addresses;
  line.steps = steps;
  line.num_taps = tile_taps_;
  line.flip = type_ == CodeType::kInt8 ? 0x80 : 0;
  line.channels = channels;
  line.start = reinterpret_cast<const int32_t*>(packed);
  line.weights = reinterpret_cast<const int8_t*>(packed + padded_channels_ * 4);
  line.conversion = scale_.ToBytes();
  line.conversion.twice = blocks_.data();
  int64_t full_begin, full_end;
  x.FullPositions(&full_begin, &full_end);
  auto* expanded = zeros + Align(channels);
  int64_t strip_end = first, strip_top = 0;  // The output line behind the expanded ones, and their first input line.
  for (int64_t row = first; row < last; ++row) {
    const uint8_t* image = input + row / y.output * y.input * x.input * sizes_.input_channels;
    const int64_t top = y.First(row % y.output);
    if (multiplier_ > 1) {
      if (row == strip_end) {
        const int64_t lines = std::min({strip_lines_, y.output - row % y.output, last - row});
        strip_end = row + lines;
        strip_top = std::clamp<int64_t>(top, 0, y.input);
        const int64_t bottom = y.First(row % y.output + lines - 1) + (y.taps - 1) * y.dilation + 1;
        const int64_t pixels = std::max<int64_t>(std::min(bottom, y.input) - strip_top, 0) * x.input;
        const uint8_t* from = image + strip_top * x.input * sizes_.input_channels;
        RepeatCodes(pixels * sizes_.input_channels, multiplier_, from, expanded);
      }
      image = expanded;
    }
    int64_t begin, end;
    for (int64_t column = 0; column < x.output;) {
      x.TapsInside(column, &begin, &end);
      // Columns whose taps are all inside are one call.
      const int64_t next = column >= full_begin && column < full_end ? full_end : column + 1;
      // Divisions would take longer than the loop over a few pixels.
      int64_t ty = 0, tx = 0;
      for (int64_t tap = 0; tap < tile_taps_; ++tap) {
        const int64_t in_y = top + ty * y.dilation;
        const bool is_inside = in_y >= 0 && in_y < y.input && tx >= begin && tx < end;
        addresses[tap] =
            is_inside ? image + ((in_y - strip_top) * x.input + x.First(column) + tx * x.dilation) * channels : zeros;
        steps[tap] = is_inside ? x.stride * channels : 0;
        if (++tx == x.taps) {
          tx = 0;
          if (++ty == y.taps) ty = 0;  // The taps are repeated.
        }
      }
      int64_t pixels = next - column;
      uint8_t* to = output + (row * x.output + column) * channels;
      if (const int64_t groups = pixels / pixels_at_once_; pixels_at_once_ > 1 && groups > 0) {
        for (int64_t tap = 0; tap < tile_taps_; ++tap) steps[tap] *= pixels_at_once_;
        line.channels = kDepthwiseChannels;
        loop_(groups, line, to);
        line.channels = channels;
        for (int64_t tap = 0; tap < tile_taps_; ++tap) steps[tap] = steps[tap] == 0 ? 0 : channels;
        to += groups * kDepthwiseChannels;
        pixels -= groups * pixels_at_once_;
      }
      if (pixels > 0) loop_(pixels, line, to);
      column = next;
    }
  }
}

void IntegerDepthwise::Pack(const void* filter, const void* bias, char* packed) const {
  if (loop_ != nullptr) return PackTiles(filter, bias, packed);
  const int64_t channels = sizes_.output_channels;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t start = 0;
    if (bias != nullptr && bias_ != BiasType::kNone) {
      start = bias_ == BiasType::kInt32 ? static_cast<const int32_t*>(bias)[c] : static_cast<const int64_t*>(bias)[c];
    }
    if (scale_.is_wide()) {
      reinterpret_cast<int64_t*>(packed)[c] = start;
    } else {
      reinterpret_cast<int32_t*>(packed)[c] = static_cast<int32_t>(start);
    }
  }
  auto* weights = reinterpret_cast<int16_t*>(packed + Align(channels * (scale_.is_wide() ? 8 : 4)));
  const int64_t count = sizes_.window.y.taps * sizes_.window.x.taps * channels;
  if (type_ == CodeType::kUint8) {
    const auto* codes = static_cast<const uint8_t*>(filter);
    for (int64_t i = 0; i < count; ++i) weights[i] = static_cast<int16_t>(codes[i] - filter_zero_);
  } else {
    std::copy_n(static_cast<const int8_t*>(filter), count, weights);
  }
}

template <typename T, typename Sum>
PF_INLINE inline void IntegerDepthwise::ComputeLines(const T* input, const char* packed, int64_t first, int64_t last,
                                                     char* scratch, T* output) const {
  constexpr int64_t kBlock = 32;  // Channels whose sums stay in registers.
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t inputs = sizes_.input_channels, channels = sizes_.output_channels;
  const auto* starts = reinterpret_cast<const Sum*>(packed);
  const auto* weights = reinterpret_cast<const int16_t*>(packed + Align(channels * static_cast<int64_t>(sizeof(Sum))));
  auto* sums = reinterpret_cast<Sum*>(scratch);
  const int32_t zero = input_zero_;
  for (int64_t row = first; row < last; ++row) {
    const int64_t line = row % y.output, image = row / y.output;
    int64_t y_begin, y_end, x_begin, x_end;
    y.TapsInside(line, &y_begin, &y_end);
    for (int64_t column = 0; column < x.output; ++column) {
      x.TapsInside(column, &x_begin, &x_end);
      const T* image_codes = input + image * y.input * x.input * inputs;
      // Calls visit(pixel, weights) for each tap inside the image.
      const auto for_each_tap = [&](auto visit) PF_INLINE {
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          const int64_t pixel = (y.First(line) + ty * y.dilation) * x.input + x.First(column);
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            visit(image_codes + (pixel + tx * x.dilation) * inputs, weights + (ty * x.taps + tx) * channels);
          }
        }
      };
      if (multiplier_ == 1) {
        int64_t c = 0;
        for (; c + kBlock <= channels; c += kBlock) {
          Sum block[kBlock];
          for (int64_t i = 0; i < kBlock; ++i) block[i] = starts[c + i];
          for_each_tap([&](const T* codes, const int16_t* tap_weights) PF_INLINE {
            for (int64_t i = 0; i < kBlock; ++i) {
              block[i] += static_cast<Sum>((int32_t{codes[c + i]} - zero) * tap_weights[c + i]);
            }
          });
          for (int64_t i = 0; i < kBlock; ++i) sums[c + i] = block[i];
        }
        std::copy(starts + c, starts + channels, sums + c);
        for_each_tap([&](const T* codes, const int16_t* tap_weights) PF_INLINE {
          for (int64_t i = c; i < channels; ++i) {
            sums[i] += static_cast<Sum>((int32_t{codes[i]} - zero) * tap_weights[i]);
          }
        });
      } else {
        std::copy_n(starts, channels, sums);
        for_each_tap([&](const T* codes, const int16_t* tap_weights) PF_INLINE {
          for (int64_t i = 0; i < inputs; ++i) {
            const int32_t code = int32_t{codes[i]} - zero;
            for (int64_t m = i * multiplier_; m < (i + 1) * multiplier_; ++m) {
              sums[m] += static_cast<Sum>(code * tap_weights[m]);
            }
          }
        });
      }
      scale_.Convert(sums, channels, 1, 0, channels, output + (row * x.output + column) * channels, channels);
    }
  }
}

void IntegerDepthwise::Compute(const void* input, const char* packed, int64_t first, int64_t last, char* scratch,
                               void* output) const {
  if (loop_ != nullptr) {
    return ComputeTiles(static_cast<const uint8_t*>(input), packed, first, last, scratch,
                        static_cast<uint8_t*>(output));
  }
  // Sums are unsigned, since they wrap around.
  const auto compute = [&](const auto* codes, auto sum, auto* to) {
    Multiversion([&]() PF_INLINE {
      ComputeLines<std::decay_t<decltype(*to)>, decltype(sum)>(codes, packed, first, last, scratch, to);
    });
  };
  if (type_ == CodeType::kInt8) {
    compute(static_cast<const int8_t*>(input), uint32_t{}, static_cast<int8_t*>(output));
  } else if (type_ == CodeType::kUint8) {
    compute(static_cast<const uint8_t*>(input), uint32_t{}, static_cast<uint8_t*>(output));
  } else {
    compute(static_cast<const int16_t*>(input), uint64_t{}, static_cast<int16_t*>(output));
  }
}

absl::StatusOr<IntegerTransposeConvolution> IntegerTransposeConvolution::Make(const IntegerWeighting& weighting,
                                                                              const ConvolutionSizes& sizes,
                                                                              const FilterStrides& filter) {
  PF_RETURN_IF_ERROR(CheckSizes(sizes, 1));
  PF_RETURN_IF_ERROR(CheckFilterZero(weighting));
  const WindowAxis &y = sizes.window.y, &x = sizes.window.x;
  if (y.dilation != 1 || x.dilation != 1) {
    return absl::UnimplementedError("a transposed convolution of codes has no dilations");
  }
  IntegerTransposeConvolution made;
  made.sizes_ = sizes;
  made.filter_ = filter;
  made.code_size_ = BytesOf(weighting.input.type);
  made.zero_byte_ = ZeroByte(weighting.input);
  made.rows_ = sizes.batch * y.input;
  made.phases_y_ = std::min(y.stride, y.taps);
  made.phases_x_ = std::min(x.stride, x.taps);
  for (int64_t i = 0; i <= made.phases_y_ * made.phases_x_; ++i) {
    Phase phase = {};
    if (i < made.phases_y_ * made.phases_x_) {
      phase.y = i / made.phases_x_;
      phase.x = i % made.phases_x_;
      phase.taps_y = (y.taps - phase.y + y.stride - 1) / y.stride;
      phase.taps_x = (x.taps - phase.x + x.stride - 1) / x.stride;
    }
    IntegerProduct::Depth depth;
    depth.inputs = sizes.input_channels;
    depth.input_step = filter.input;
    depth.taps_y = phase.taps_y;
    depth.tap_y_step = filter.row * y.stride;
    depth.taps_x = phase.taps_x;
    depth.tap_x_step = filter.column * x.stride;
    IntegerProductTraits traits;
    traits.always_wide = true;
    PF_ASSIGN_OR_RETURN(phase.product,
                        IntegerProduct::Make(weighting, depth, sizes.output_channels, filter.output, traits));
    phase.offset = made.packed_size_;
    made.packed_size_ += Align(phase.product.packed_size());
    made.scratch_size_ = std::max(made.scratch_size_, phase.product.scratch_size());
    made.phases_.push_back(std::move(phase));
  }
  return made;
}

void IntegerTransposeConvolution::Pack(const void* filter, const void* bias, char* packed) const {
  for (const Phase& phase : phases_) {
    phase.product.Pack(Advance(filter, phase.y * filter_.row + phase.x * filter_.column), bias, packed + phase.offset);
  }
}

void IntegerTransposeConvolution::Compute(const void* input, const char* packed, int64_t first, int64_t last,
                                          char* scratch, void* output) const {
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t pixel_size = sizes_.input_channels * code_size_;
  const auto remainder = [](int64_t position, int64_t stride) { return ((position % stride) + stride) % stride; };
  for (int64_t row = first; row < last; ++row) {
    const int64_t line = row % y.input, image = row / y.input;
    const int64_t phase_y = remainder(line + y.pad_before, y.stride);
    const int64_t last_y = (line + y.pad_before - phase_y) / y.stride;  // Input line of the phase's first tap.
    const char* codes = static_cast<const char*>(input) + image * y.output * x.output * pixel_size;
    for (int64_t start = 0; start < std::min(x.stride, x.input); ++start) {
      const int64_t phase_x = remainder(start + x.pad_before, x.stride);
      const int64_t last_x = (start + x.pad_before - phase_x) / x.stride;
      const bool has_taps = phase_y < phases_y_ && phase_x < phases_x_;
      const Phase& phase = has_taps ? phases_[phase_y * phases_x_ + phase_x] : phases_.back();
      const auto row_of = [&](int64_t pixel, char* buffer) -> const void* {
        char* to = buffer;
        for (int64_t ty = 0; ty < phase.taps_y; ++ty) {
          for (int64_t tx = 0; tx < phase.taps_x; ++tx, to += pixel_size) {
            const int64_t in_y = last_y - ty, in_x = last_x + pixel - tx;
            if (in_y < 0 || in_y >= y.output || in_x < 0 || in_x >= x.output) {
              std::memset(to, zero_byte_, static_cast<size_t>(pixel_size));
            } else {
              std::memcpy(to, codes + (in_y * x.output + in_x) * pixel_size, static_cast<size_t>(pixel_size));
            }
          }
        }
        return buffer;
      };
      phase.product.ComputeRows(
          row_of, packed + phase.offset, 0, (x.input - start + x.stride - 1) / x.stride, scratch,
          static_cast<char*>(output) + (row * x.input + start) * sizes_.output_channels * code_size_,
          x.stride * sizes_.output_channels);
    }
  }
}

}  // namespace permafrost

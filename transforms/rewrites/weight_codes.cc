// Quantises float tensors to codes of few bits.
#include "transforms/rewrites/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "transforms/rewrites/channel_rows.h"
#include "transforms/rewrites/float_ranges.h"

namespace permafrost {
namespace {

constexpr float kSmallestNormal = std::numeric_limits<float>::min();

constexpr char kNotFinite[] = "holds NaN or infinity, which codes cannot represent";
constexpr char kTooWide[] = "its range exceeds that of float";
constexpr char kTooSmall[] = "its values are too small: the step between codes would be 0";

// Factor between a 4-bit code and the high bits of the byte that it is decoded in.
constexpr int kNibbleShift = 4;

// Linear mapping of a format. Codes exclude zero_code: value = (code - zero_code) * step.
struct Line {
  float min = 0, max = 0;  // The range given to Dequantize.
  double step = 0;
  double scale = 0;       // Codes per unit; 0 if every value is 0.
  int32_t zero_code = 0;  // The code of 0; MIN_FIRST starts from -zero_code.
  int32_t lowest = 0, highest = 0;
};

float RoundUp(double value) {
  const float nearest = static_cast<float>(value);
  return nearest < value ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

// Returns `value`, positive, rounded up to the given number of mantissa bits, including the leading one.
float RoundUpTo(float value, int bits) {
  uint32_t pattern;
  std::memcpy(&pattern, &value, sizeof(pattern));
  const uint32_t dropped = (uint32_t{1} << (24 - bits)) - 1;
  pattern = (pattern + dropped) & ~dropped;
  std::memcpy(&value, &pattern, sizeof(value));
  return value;
}

// Computes the range exactly as TensorFlow does, since the output must be byte-identical. The range always includes 0,
// so that 0 is represented exactly. The search for the maximum starts at the smallest normal number, which changes no
// code; only a tensor of zeros needs a wider range.
Line MinFirstLine(float min, float max) {
  constexpr int kCodes = 256;
  Line line;
  line.min = std::min(min, 0.0f);
  line.max = std::max(max, kSmallestNormal);
  if (min == 0 && max == 0) line.max = 1;
  // The range is stretched by 256/255 so that 256 steps of it hold 256 codes. The difference is computed in float, as
  // in TensorFlow.
  const double width = static_cast<double>(line.max - line.min) * (kCodes / (kCodes - 1.0));
  line.scale = kCodes / width;
  line.step = (line.max - line.min) / (kCodes - 1);
  const double zero_code = -std::round(line.min * line.scale);
  line.zero_code = std::isfinite(zero_code) ? static_cast<int32_t>(zero_code) : 0;
  line.highest = kCodes - 1;
  return line;
}

// Dequantize divides the range by the highest code of its input type, 127 or 32767.
Line ScaledLine(float min, float max, const CodeFormat& format, double shrink) {
  const bool is_nibble = format.bits == 4;
  const double multiplier = is_nibble ? 1 << kNibbleShift : 1;
  const double divisor = format.bits == 16 ? 32767 : 127;
  Line line;
  line.highest = (1 << (format.bits - 1)) - 1;
  line.lowest = format.is_symmetric ? -line.highest : -line.highest - 1;
  const double unit = std::max(max / static_cast<double>(line.highest), min / static_cast<double>(line.lowest));
  float range = RoundUp(unit * shrink * divisor / multiplier);
  if (format.has_coarse_ranges) range = RoundUpTo(range, 8);
  line.min = line.max = range;
  const float step = range / static_cast<float>(divisor);
  line.step = step * multiplier;
  if (format.has_coarse_steps) {
    line.step = RoundUpTo(static_cast<float>(line.step), 8);
    line.min = line.max = static_cast<float>(line.step / multiplier * divisor);
  }
  line.scale = line.step > 0 ? 1 / line.step : 0;
  return line;
}

// The step has so few bits that its products with all codes are exact, so 0 decodes to 0.
Line MinCombinedLine(float min, float max, const CodeFormat& format) {
  Line line;
  line.highest = (1 << format.bits) - 1;
  double low = min, high = max;
  if (format.is_symmetric) low = -(high = std::max(-low, high));
  const float step = RoundUpTo(RoundUp((high - low) / line.highest), 24 - format.bits);
  line.step = step;
  line.scale = step > 0 ? 1.0 / step : 0;
  line.zero_code = static_cast<int32_t>(std::min<double>(std::round(-low * line.scale), line.highest));
  line.min = static_cast<float>(-line.zero_code * line.step);
  line.max = static_cast<float>((line.highest - line.zero_code) * line.step);
  return line;
}

// REQUIRES: finite min <= 0 <= max.
Line LineOf(float min, float max, const CodeFormat& format, double shrink = 1) {
  switch (format.mode) {
    case CodeMode::kMinFirst:
      if (format.is_symmetric) min = -(max = std::max(-min, max));
      return MinFirstLine(min, max);
    case CodeMode::kScaled:
      return ScaledLine(min, max, format, shrink);
    case CodeMode::kMinCombined:
      break;
  }
  return MinCombinedLine(min, max, format);
}

// Returns why values between min and max cannot be quantised; null if they can.
const char* Objection(float min, float max, const Line& line) {
  if (!std::isfinite(line.min) || !std::isfinite(line.max) || !std::isfinite(line.max - line.min)) return kTooWide;
  if (!std::isfinite(line.step)) return kTooWide;
  // Many machines flush a denormal step to 0, which would lose all values.
  const bool is_zero = min == 0 && max == 0;
  return !is_zero && line.step < kSmallestNormal ? kTooSmall : nullptr;
}

// --- One range for the tensor ----------------------------------------------------------------------------------------

// Rounds like std::round, half away from zero, in a form that vectorises. Exact, because `position - whole` is exact
// within the range of codes.
template <typename Code>
inline PF_INLINE void EncodeBlock(const float* values, const Line& line, Code* codes) {
  const double scale = line.scale;
  const int32_t zero_code = line.zero_code, lowest = line.lowest, highest = line.highest;
  int32_t wide[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    const double position = values[i] * scale;
    const int32_t whole = static_cast<int32_t>(position);
    const double rest = position - whole;
    wide[i] = whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0) + zero_code;
  }
  for (size_t i = 0; i < kBlock; ++i) {
    const int32_t code = wide[i] < lowest ? lowest : wide[i];
    codes[i] = static_cast<Code>(code > highest ? highest : code);
  }
}

template <typename Code>
absl::Status EncodeTensor(UnalignedSpan<float> values, const CodeFormat& format, ThreadTeam* team, char* out,
                          CodedTensor* coded) {
  const FloatRange range = FindRange(values, team);
  if (!range.all_finite) return absl::FailedPreconditionError(kNotFinite);
  const float min = std::min(range.min, 0.0f), max = std::max(range.max, 0.0f);
  const Line line = LineOf(min, max, format);
  if (const char* objection = Objection(min, max, line)) return absl::FailedPreconditionError(objection);
  coded->min.push_back(line.min);
  coded->max.push_back(line.max);
  team->ForPieces(values.size(), [&](size_t start, size_t end) {
    alignas(64) float block[kBlock];
    alignas(64) Code codes[kBlock];
    Multiversion([&]() PF_INLINE {
      for (; start < end; start += kBlock) {
        const size_t count = LoadBlock(values, start, block);
        EncodeBlock(block, line, codes);
        std::memcpy(out + start * sizeof(Code), codes, count * sizeof(Code));
      }
    });
  });
  return absl::OkStatus();
}

// --- A range for each channel ----------------------------------------------------------------------------------------

// State of the elements of a channel. The codes exclude zero_code.
struct Row {
  explicit Row(size_t size) : codes(size), rests(size), bins(size) {}
  std::vector<int32_t> codes;
  std::vector<float> rests;   // Rounding remainders, in codes.
  std::vector<uint8_t> bins;  // Distance to the midpoint between two codes.
};

void RoundRow(const float* __restrict values, size_t size, const Line& line, Row* row) {
  int32_t* __restrict codes = row->codes.data();
  float* __restrict rests = row->rests.data();
  const auto scale = static_cast<float>(line.scale);
  const int32_t lowest = line.lowest - line.zero_code, highest = line.highest - line.zero_code;
  Multiversion([=]() PF_INLINE {
    for (size_t i = 0; i < size; ++i) {
      const float position = values[i] * scale;
      const int32_t nearest = static_cast<int32_t>(position + (position < 0 ? -0.5f : 0.5f));
      const int32_t raised = nearest < lowest ? lowest : nearest;
      const int32_t code = raised > highest ? highest : raised;
      codes[i] = code;
      rests[i] = position - static_cast<float>(code);
    }
  });
}

// Sums in several lanes, so that additions do not depend on each other.
template <typename Term>
double SumOf(size_t size, const Term& term) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (; i < size; ++i) lanes[0] += term(i);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Moves the codes whose values are nearest to the midpoint between two codes to the other code, until the remainders
// sum to less than half a code. Zeros stay zero. Distances are compared in steps of 1/128, and in element order within
// a step.
void KeepSum(const float* __restrict values, size_t size, const Line& line, Row* row) {
  constexpr float kBins = 128;
  const float* __restrict rests = row->rests.data();
  int32_t* __restrict codes = row->codes.data();
  uint8_t* __restrict bins = row->bins.data();
  const double sum = SumOf(size, [=](size_t i) { return static_cast<double>(rests[i]); });
  size_t wanted = static_cast<size_t>(std::round(std::fabs(sum)));
  if (wanted == 0) return;
  const int32_t sign = sum < 0 ? -1 : 1;
  const int32_t lowest = line.lowest - line.zero_code - sign, highest = line.highest - line.zero_code - sign;
  Multiversion([=]() PF_INLINE {
    for (size_t i = 0; i < size; ++i) {
      const float rest = rests[i] * static_cast<float>(sign);
      const bool can_move =
          (rest > 0) & (rest <= 0.5f) & (values[i] != 0) & (codes[i] >= lowest) & (codes[i] <= highest);
      bins[i] = can_move ? static_cast<uint8_t>(static_cast<int32_t>(rest * kBins)) : 0;
    }
  });
  size_t counts[static_cast<int>(kBins) / 2 + 1] = {};
  for (size_t i = 0; i < size; ++i) ++counts[bins[i]];
  int threshold = static_cast<int>(kBins) / 2;
  // Bin 0 holds the elements that cannot move.
  for (; threshold > 1 && counts[threshold] < wanted; --threshold) wanted -= counts[threshold];
  for (size_t i = 0; i < size; ++i) codes[i] += bins[i] > threshold ? sign : 0;
  for (size_t i = 0; i < size && wanted > 0; ++i) {
    if (bins[i] != threshold) continue;
    codes[i] += sign;
    --wanted;
  }
}

// Clipping the extremes improves accuracy at four bits but not at eight.
Line BestLine(const float* values, size_t size, float min, float max, const CodeFormat& format, Row* row) {
  Line best = LineOf(min, max, format);
  if (format.bits != 4) return best;
  double least = std::numeric_limits<double>::infinity();
  for (int percent = 100; percent >= 50; percent -= 5) {
    const Line line = LineOf(min, max, format, percent / 100.0);
    RoundRow(values, size, line, row);
    const double error = SumOf(size, [&](size_t i) { return static_cast<double>(row->rests[i]) * row->rests[i]; }) *
                         line.step * line.step;
    if (error >= least) continue;
    least = error;
    best = line;
  }
  return best;
}

template <typename Code>
const char* EncodeRow(const float* values, size_t size, const CodeFormat& format, Code* codes, Line* line) {
  ThreadTeam alone(1);
  const FloatRange range = FindRange(UnalignedSpan<float>(reinterpret_cast<const char*>(values), size), &alone);
  if (!range.all_finite) return kNotFinite;
  const float min = std::min(range.min, 0.0f), max = std::max(range.max, 0.0f);
  *line = LineOf(min, max, format);
  if (const char* objection = Objection(min, max, *line)) return objection;
  Row row(size);
  *line = BestLine(values, size, min, max, format, &row);
  RoundRow(values, size, *line, &row);
  if (format.keep_sums) KeepSum(values, size, *line, &row);
  for (size_t i = 0; i < size; ++i) codes[i] = static_cast<Code>(row.codes[i] + line->zero_code);
  return nullptr;
}

template <typename Code>
absl::Status EncodeChannels(UnalignedSpan<float> values, const CodeFormat& format, ThreadTeam* team, char* out,
                            CodedTensor* coded) {
  const int64_t count = format.channels.count;
  coded->min.resize(count);
  coded->max.resize(count);
  std::vector<const char*> objections(count, nullptr);
  const ChannelRows<Code> rows(values, format.channels);
  rows.ForEach(team, out, [&](int64_t channel, const float* row, Code* codes) {
    Line line;
    objections[channel] = EncodeRow(row, rows.size(), format, codes, &line);
    coded->min[channel] = line.min;
    coded->max[channel] = line.max;
  });
  for (const char* objection : objections) {
    if (objection != nullptr) return absl::FailedPreconditionError(objection);
  }
  return absl::OkStatus();
}

DType CodeType(const CodeFormat& format) {
  if (format.mode == CodeMode::kScaled) return format.bits == 16 ? DType::kQInt16 : DType::kQInt8;
  return format.bits == 16 ? DType::kQUint16 : DType::kQUint8;
}

// Iterates over the channels of consecutive elements.
class ChannelCursor {
 public:
  explicit ChannelCursor(Channels channels) : channels_(channels) {}
  int64_t channel() const { return channel_; }
  void Next() {
    if (++offset_ < channels_.inner) return;
    offset_ = 0;
    if (++channel_ == channels_.count) channel_ = 0;
  }

 private:
  const Channels channels_;
  int64_t offset_ = 0, channel_ = 0;
};

// Returns step and zero_code of each range, from the range given to Dequantize.
std::vector<Line> LinesOf(const CodedTensor& coded, const CodeFormat& format) {
  std::vector<Line> lines(coded.max.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    Line& line = lines[i];
    if (format.mode == CodeMode::kScaled) {
      line.step = coded.max[i] / (format.bits == 16 ? 32767.0f : 127.0f);
      if (format.bits == 4) line.step *= 1 << kNibbleShift;
      continue;
    }
    const double n = (1 << format.bits) - 1;
    line.step = static_cast<float>((coded.max[i] - coded.min[i]) / n);
    if (line.step > 0) line.zero_code = -static_cast<int32_t>(std::round(coded.min[i] / line.step));
  }
  return lines;
}

}  // namespace

absl::StatusOr<CodedTensor> Encode(const Tensor& values, const CodeFormat& format, ThreadTeam* team) {
  const DType type = CodeType(format);
  CodedTensor coded;
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(coded.codes, Tensor::Allocate(type, values.shape(), &out));
  absl::Status status;
  DispatchOn<QInt8, QUint8, QInt16, QUint16>(type, [&](auto tag) {
    using Code = decltype(typename decltype(tag)::type().value);
    const UnalignedSpan<float> elements = values.elements<float>();
    status = format.channels.count == 1 && format.bits != 4 && !format.keep_sums
                 ? EncodeTensor<Code>(elements, format, team, out, &coded)
                 : EncodeChannels<Code>(elements, format, team, out, &coded);
  });
  if (!status.ok()) return status;
  return coded;
}

absl::StatusOr<Tensor> Decode(const CodedTensor& coded, const CodeFormat& format) {
  const std::vector<Line> lines = LinesOf(coded, format);
  float* values = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor decoded, Tensor::Allocate<float>(coded.codes.shape(), &values));
  DispatchOn<QInt8, QUint8, QInt16, QUint16>(coded.codes.dtype(), [&](auto tag) {
    using Element = typename decltype(tag)::type;
    const UnalignedSpan<Element> codes = coded.codes.elements<Element>();
    ChannelCursor range(format.channels);
    for (size_t i = 0; i < codes.size(); ++i, range.Next()) {
      const Line& line = lines[range.channel()];
      values[i] = static_cast<float>((codes[i].value - line.zero_code) * line.step);
    }
  });
  return decoded;
}

double CodingError(const Tensor& values, const Tensor& decoded, Channels channels) {
  std::vector<double> squares(channels.count), errors(channels.count);
  const UnalignedSpan<float> elements = values.elements<float>(), others = decoded.elements<float>();
  ChannelCursor measured(channels);
  for (size_t i = 0; i < elements.size(); ++i, measured.Next()) {
    const double value = elements[i];
    const double error = others[i] - value;
    squares[measured.channel()] += value * value;
    errors[measured.channel()] += error * error;
  }
  double sum = 0;
  int64_t count = 0;
  for (int64_t c = 0; c < channels.count; ++c) {
    if (squares[c] <= 0) continue;
    sum += errors[c] / squares[c];
    ++count;
  }
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

absl::StatusOr<Tensor> PackNibbles(const Tensor& codes, int dim) {
  const Shape& shape = codes.shape();
  std::vector<int64_t> dims;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    dims.push_back(i == dim ? shape.dim(i) / 2 : shape.dim(i));
    if (i < dim) outer *= shape.dim(i);
    if (i >= dim) inner *= dims.back();
  }
  int8_t* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor packed, Tensor::Allocate<int8_t>(Shape(dims), &out));
  const UnalignedSpan<QInt8> all = codes.elements<QInt8>();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int low = all[o * 2 * inner + i].value & 15, high = all[(o * 2 + 1) * inner + i].value & 15;
      out[o * inner + i] = static_cast<int8_t>(low | high << kNibbleShift);
    }
  }
  return packed;
}

}  // namespace permafrost

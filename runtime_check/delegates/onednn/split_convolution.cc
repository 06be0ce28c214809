// Computes bands of output lines. The input of a band is split into two padded bfloat16 images. Tiles of neighbouring
// positions are multiplied directly from these images, without a copy.
#include "runtime_check/delegates/onednn/split_convolution.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/quantization.h"
#include "runtime_check/delegates/onednn/split_products.h"
#include "runtime_check/delegates/onednn/storage_values.h"

namespace permafrost {
namespace onednn {
namespace {

// Minimum number of multiplications: with fewer, the set-up takes as long as the run. Convolutions with shorter
// products or fewer outputs are limited by memory bandwidth, and splitting adds to their memory traffic.
constexpr int64_t kWorthSplitting = 256 * 1024;
constexpr int64_t kShortestProduct = 96, kFewestOutputs = 24;
// Minimum number of multiplications per thread, as in weighted.cc: fewer are done before a second thread starts.
constexpr int64_t kWorthAThread = 1024 * 1024;
// Both images of a band stay in the L2 cache, with weights of the same size.
constexpr int64_t kBandBytes = 512 * 1024;

constexpr int64_t kBlockFloats = kSplitBlock * kSplitBlock;

int64_t RoundedUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

class SplitConvolution final : public Piece {
 public:
  SplitConvolution(const WeightedOp& op, const StorageTypes& types, int num_threads)
      : window_(op.parsed.window),
        source_type_(types.Of(op.input)),
        target_type_(types.Of(op.output)),
        steps_(op.post_steps),
        has_low_(!source_type_.IsBf16()) {
    name = op.name;
    reads = {op.input};
    writes = {op.output};
    for (const Step& step : steps_) {
      other_types_.push_back(step.other >= 0 ? types.Of(step.other) : StorageType());
      if (step.other >= 0) reads.push_back(step.other);
    }
    ListRuns(op);
    ChooseBands(num_threads);
    PrepareConstants(op);
  }

  absl::Status Run(const RunContext& context) override {
    const int64_t tasks = window_.batch * num_bands_ * num_groups_;
#pragma omp parallel num_threads(num_threads_) if (num_threads_ > 1)
    {
      const SplitUnits units;
      char* const scratch = context.scratch + omp_get_thread_num() * scratch_each_;
#pragma omp for schedule(static)
      for (int64_t task = 0; task < tasks; ++task) {
        RunBand(context, task / num_groups_ / num_bands_, task / num_groups_ % num_bands_, task % num_groups_, scratch);
      }
    }
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override { return scratch_each_ * num_threads_; }
  int64_t constant_bytes() const override {
    int64_t floats = static_cast<int64_t>(bias_.size());
    for (const std::vector<float>& constants : constants_) floats += static_cast<int64_t>(constants.size());
    return weights_->bytes() + floats * static_cast<int64_t>(sizeof(float));
  }
  std::string Describe() const override {
    std::string text = absl::StrCat(name, ": convolution");
    for (const Step& step : steps_) absl::StrAppend(&text, " + ", NameOf(step.op));
    return absl::StrCat(text, " (", has_low_ ? "bf16x3" : "bf16x2", ":amx)");
  }

 private:
  // Lists the runs of a product. Contiguous taps, with all their channels, are one run.
  void ListRuns(const WeightedOp& op) {
    const WindowAxis &y = window_.y, &x = window_.x;
    const int64_t channels = window_.input_channels;
    const bool is_joined = x.dilation == 1;
    const int64_t length = is_joined ? x.taps * channels : channels;
    // The number of columns that the last position reaches.
    width_ = std::max((x.output - 1) * x.stride + (x.taps - 1) * x.dilation + 1, x.stride);
    for (int64_t ty = 0; ty < y.taps; ++ty) {
      for (int64_t tx = 0; tx < (is_joined ? 1 : x.taps); ++tx) {
        offsets_.push_back((ty * y.dilation * width_ + tx * x.dilation) * channels);
      }
    }
    weights_ = std::make_unique<SplitWeights>(ScaledWeights(op), static_cast<int64_t>(offsets_.size()), length,
                                              window_.output_channels);
    // If memory is contiguous across lines of positions, a block of positions can span several lines. The results for
    // positions between lines are discarded.
    const int64_t blocks_apart = y.output * RoundedUp(x.output, kSplitBlock / 2);
    is_flat_ = x.stride == y.stride && y.output > 1 && y.output * width_ < blocks_apart;
  }

  void ChooseBands(int num_threads) {
    const WindowAxis& y = window_.y;
    const int64_t line_bytes = width_ * window_.input_channels * 2 * (has_low_ ? 2 : 1);
    const int64_t reach = (y.taps - 1) * y.dilation + 1;
    const int64_t lines = std::max<int64_t>(reach, kBandBytes / std::max<int64_t>(1, line_bytes));
    const int64_t most = std::max<int64_t>(1, (lines - reach) / y.stride + 1);
    const int64_t work = y.output * window_.x.output * weights_->bytes() * window_.batch / 4;
    num_threads_ = work < kWorthAThread ? 1 : num_threads;
    // Divide the larger one among the threads: the image or the weights.
    num_groups_ = weights_->bytes() > y.output * y.stride * line_bytes
                      ? std::min<int64_t>(num_threads_, weights_->num_blocks())
                      : 1;
    num_bands_ = (y.output + most - 1) / most;
    if (num_groups_ == 1) num_bands_ = std::min(y.output, RoundedUp(num_bands_, num_threads_));
    band_ = (y.output + num_bands_ - 1) / num_bands_;
    num_bands_ = (y.output + band_ - 1) / band_;
    const int64_t band_lines = (band_ - 1) * y.stride + reach;
    // Blocks of positions, and the last tile of a run, extend past the end.
    const int64_t beyond = kSplitBlock * window_.x.stride * window_.input_channels + kSplitBlock;
    plane_elements_ = RoundedUp(band_lines * width_ * window_.input_channels + beyond, 32);
    line_floats_ = source_type_.IsFloat() ? 0 : RoundedUp(window_.x.input * window_.input_channels, 16);
    scratch_each_ = plane_elements_ * 2 * (has_low_ ? 2 : 1) + line_floats_ * 4 + 2 * kBlockFloats * 4;
  }

  // Prepares the constants per block of outputs, padded with zeros after the last output.
  void PrepareConstants(const WeightedOp& op) {
    const auto outputs = static_cast<size_t>(RoundedUp(window_.output_channels, kSplitBlock));
    bias_ = op.bias;
    bias_.resize(outputs, 0.0f);
    constants_.resize(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const std::vector<float>& given = steps_[i].constants;
      if (given.empty()) continue;
      // The constants of each block, repeated for all positions.
      std::vector<float>& made = constants_[i];
      made.assign(outputs * kSplitBlock, 0.0f);
      for (size_t at = 0; at < made.size(); ++at) {
        const size_t o = at / kBlockFloats * kSplitBlock + at % kSplitBlock;
        if (given.size() == 1) made[at] = given[0];
        if (given.size() > 1 && o < given.size()) made[at] = given[o];
      }
    }
    // A single clip is applied when sums are written to the target.
    if (steps_.size() == 1 && (steps_[0].op == LoopOp::kRelu || steps_[0].op == LoopOp::kClip)) {
      least_ = steps_[0].op == LoopOp::kRelu ? 0.0f : steps_[0].alpha;
      most_ = steps_[0].op == LoopOp::kRelu ? std::numeric_limits<float>::infinity() : steps_[0].beta;
      is_clip_ = true;
    }
  }

  struct Planes {
    uint16_t *high, *low;
    float *line, *sums, *other;
  };

  void RunBand(const RunContext& context, int64_t image, int64_t band, int64_t group, char* scratch) const {
    Planes planes;
    planes.high = reinterpret_cast<uint16_t*>(scratch);
    planes.low = has_low_ ? planes.high + plane_elements_ : nullptr;
    planes.sums = reinterpret_cast<float*>(planes.high + plane_elements_ * (has_low_ ? 2 : 1));
    planes.other = planes.sums + kBlockFloats;
    planes.line = planes.other + kBlockFloats;
    const int64_t first = band * band_, last = std::min(window_.y.output, first + band_);
    FillPlanes(context.tensors[reads[0]], image, first, last, planes);
    const int64_t blocks = weights_->num_blocks();
    const int64_t begin = blocks * group / num_groups_, end = blocks * (group + 1) / num_groups_;
    const int64_t channels = window_.input_channels, step = window_.x.stride * channels;
    const int64_t line_step = window_.y.stride * width_ * channels;
    const int64_t lines = is_flat_ ? 1 : last - first;
    const int64_t positions = is_flat_ ? (last - first - 1) * width_ + window_.x.output : window_.x.output;
    for (int64_t block = begin; block < end; ++block) {
      for (int64_t line = 0; line < lines; ++line) {
        for (int64_t p = 0; p < positions; p += kSplitBlock) {
          const int64_t at = line * line_step + p * step;
          const SplitSource source{planes.high + at, has_low_ ? planes.low + at : nullptr, step, offsets_.data()};
          const int64_t count = std::min(kSplitBlock, positions - p);
          MultiplySplit(source, *weights_, block, count, planes.sums);
          Finish(context, (image * window_.y.output + first + line) * window_.x.output, p, count, block, planes);
        }
      }
    }
  }

  // Fills the planes with the input of the output lines [first, last).
  void FillPlanes(const char* storage, int64_t image, int64_t first, int64_t last, const Planes& planes) const {
    const WindowAxis &y = window_.y, &x = window_.x;
    const int64_t channels = window_.input_channels;
    const int64_t top = y.First(first), lines = (last - 1 - first) * y.stride + (y.taps - 1) * y.dilation + 1;
    const int64_t before = std::min(x.pad_before, width_);
    const int64_t inside = std::max<int64_t>(0, std::min(x.input, width_ - before));
    const auto clear = [&](int64_t begin, int64_t end) {
      if (end <= begin) return;
      std::memset(planes.high + begin, 0, static_cast<size_t>(end - begin) * 2);
      if (has_low_) std::memset(planes.low + begin, 0, static_cast<size_t>(end - begin) * 2);
    };
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t at = line * width_ * channels, from = top + line;
      if (from < 0 || from >= y.input) {
        clear(at, at + width_ * channels);
        continue;
      }
      clear(at, at + before * channels);
      clear(at + (before + inside) * channels, at + width_ * channels);
      const int64_t offset = (image * y.input + from) * x.input * channels, count = inside * channels;
      const int64_t to = at + before * channels;
      if (!has_low_) {
        std::memcpy(planes.high + to, storage + offset * 2, static_cast<size_t>(count) * 2);
      } else if (source_type_.IsFloat()) {
        SplitFloats(count, reinterpret_cast<const float*>(storage) + offset, planes.high + to, planes.low + to);
      } else {
        LoadFloats(source_type_, storage, offset, count, planes.line);
        SplitFloats(count, planes.line, planes.high + to, planes.low + to);
      }
    }
    // The last tile of the last run reads past its end. The values there are multiplied by zero, so they must be
    // finite.
    const int64_t end = lines * width_ * channels;
    clear(end, end + kSplitBlock);
  }

  // Converts sums to results, for the positions [p, p + count) of lines whose first pixel is `pixel`.
  void Finish(const RunContext& context, int64_t pixel, int64_t p, int64_t count, int64_t block,
              const Planes& planes) const {
    const bool is_direct = is_clip_ || steps_.empty();
    // Processes one line after the other, and skips the positions between lines.
    int64_t x = is_flat_ ? p % width_ : p, y = is_flat_ ? p / width_ : 0;
    for (int64_t i = 0; i < count;) {
      const int64_t pixels = std::min(count - i, window_.x.output - x);
      if (pixels > 0) {
        const Rows rows{planes.sums + i * kSplitBlock, pixel + y * window_.x.output + x, pixels, block * kSplitBlock};
        if (is_direct) {
          Write(context, rows, bias_.data() + rows.first, least_, most_);
        } else {
          RunSteps(context, rows, planes.other);
        }
        i += pixels;
        x += pixels;
      }
      if (i == count) break;
      i += width_ - x;
      x = 0;
      ++y;
    }
  }

  // Sums of neighbouring pixels, for kSplitBlock outputs starting at `first`.
  struct Rows {
    float* sums;
    int64_t pixel, pixels, first;
  };

  void Write(const RunContext& context, const Rows& rows, const float* bias, float least, float most) const {
    const int64_t outputs = window_.output_channels, wanted = std::min(kSplitBlock, outputs - rows.first);
    char* const target = context.tensors[writes[0]];
    const int64_t at = rows.pixel * outputs + rows.first;
    if (target_type_.IsFloat()) {
      WriteSums(rows.sums, rows.pixels, wanted, bias, least, most, reinterpret_cast<float*>(target) + at, outputs);
      return;
    }
    WriteSums(rows.sums, rows.pixels, kSplitBlock, bias, least, most, rows.sums, kSplitBlock);
    for (int64_t i = 0; i < rows.pixels; ++i) {
      StoreFloats(target_type_, rows.sums + i * kSplitBlock, wanted, target, at + i * outputs);
    }
  }

  void RunSteps(const RunContext& context, const Rows& rows, float* other) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const int64_t outputs = window_.output_channels, wanted = std::min(kSplitBlock, outputs - rows.first);
    WriteSums(rows.sums, rows.pixels, kSplitBlock, bias_.data() + rows.first, -kInfinity, kInfinity, rows.sums,
              kSplitBlock);
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      const float* operand = constants_[s].empty() ? nullptr : constants_[s].data() + rows.first * kSplitBlock;
      if (step.other >= 0) {
        for (int64_t i = 0; i < rows.pixels; ++i) {
          LoadFloats(other_types_[s], context.tensors[step.other], (rows.pixel + i) * outputs + rows.first, wanted,
                     other + i * kSplitBlock);
        }
        operand = other;
      }
      RunLoop(step.op, rows.pixels * kSplitBlock, rows.sums, operand, step.alpha, step.beta, rows.sums);
    }
    Write(context, rows, zeros_.data(), -kInfinity, kInfinity);
  }

  const WindowGeometry window_;
  const StorageType source_type_, target_type_;
  const std::vector<Step> steps_;
  std::vector<StorageType> other_types_;       // By step.
  std::vector<std::vector<float>> constants_;  // By step.
  const bool has_low_;                         // A bfloat16 source has no low parts.
  std::unique_ptr<SplitWeights> weights_;
  std::vector<int64_t> offsets_;  // Offsets of runs in the images of a band.
  std::vector<float> bias_, zeros_ = std::vector<float>(kSplitBlock, 0.0f);
  float least_ = -std::numeric_limits<float>::infinity(), most_ = std::numeric_limits<float>::infinity();
  bool is_clip_ = false;
  int64_t width_ = 0;  // Width of those images.
  bool is_flat_ = false;
  int num_threads_ = 1;
  int64_t num_bands_ = 1, band_ = 1, num_groups_ = 1;  // Number of bands, lines per band, groups of blocks of outputs.
  int64_t plane_elements_ = 0, line_floats_ = 0, scratch_each_ = 0;
};

}  // namespace

bool IsSplittable(const ParsedNode& parsed) {
  const WindowGeometry& window = parsed.window;
  if (parsed.kind != NodeKind::kConvolution || window.groups != 1) return false;
  const int64_t length = window.y.taps * window.x.taps * window.input_channels;
  return length >= kShortestProduct && window.output_channels >= kFewestOutputs &&
         window.batch * window.y.output * window.x.output * window.output_channels * length >= kWorthSplitting;
}

absl::StatusOr<std::unique_ptr<Piece>> MakeSplitConvolution(const WeightedOp& op, const StorageTypes& types,
                                                            int num_threads) {
  for (const Step& step : op.post_steps) {
    if (step.other >= 0 && step.meeting != Meeting::kSame) {
      return absl::UnimplementedError("operands of its post-ops have another layout than the result");
    }
  }
  if (HasNonFinite(op.weights.bytes().data(), op.weights.num_elements())) {
    return absl::UnimplementedError("nonfinite weights cannot be split into bf16 parts");
  }
  return std::unique_ptr<Piece>(std::make_unique<SplitConvolution>(op, types, num_threads));
}

}  // namespace onednn
}  // namespace permafrost

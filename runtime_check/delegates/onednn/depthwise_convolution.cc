// Computes depthwise convolutions. A task computes one or two lines of the result. Slopes and a clip are applied when
// sums are written; other steps run over a line of floats, which is then stored.
#include "runtime_check/delegates/onednn/depthwise_convolution.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/depthwise_lines.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/packing.h"
#include "runtime_check/delegates/onednn/primitives.h"
#include "runtime_check/delegates/onednn/quantization.h"
#include "runtime_check/delegates/onednn/storage_values.h"

namespace permafrost {
namespace onednn {
namespace {

// Thresholds measured on models and on images of 7 to 193 pixels. With more channels oneDNN is faster, because it
// processes all channels of a few pixels at a time and so finds more of the source in the L1 cache. With fewer channels
// oneDNN takes up to twice the time of this kernel. This kernel halves the time of 8-bit convolutions with any number
// of channels.
constexpr int64_t kFewChannelsOfFloats = 512, kFewChannelsOfBf16 = 1024;
// The limit if lines are computed one at a time.
constexpr int64_t kFewChannelsOfSingleLines = 48;

// Minimum number of multiplications per thread: fewer are done before a second thread starts.
constexpr int64_t kWorthAThread = 128 * 1024, kWorthAThreadOfBytes = 512 * 1024;

constexpr absl::string_view kValuesSuffix = " depthwise";

// Returns true if neighbouring result lines read neighbouring input lines.
bool IsOfTwoLines(const WindowGeometry& window) {
  return window.y.stride == 1 && window.y.dilation == 1 && window.x.stride == 1;
}

class Depthwise final : public Piece {
 public:
  absl::Status Init(WeightedOp op, const StorageTypes& types, int num_threads, PackedWeights* packed) {
    name = op.name;
    reads = {op.input};
    writes = {op.output};
    window_ = op.parsed.window;
    source_ = types.Of(op.input);
    target_ = types.Of(op.output);
    const int64_t work =
        window_.batch * window_.y.output * window_.x.output * window_.input_channels * window_.y.taps * window_.x.taps;
    num_threads_ = work < (source_.IsInt8() ? kWorthAThreadOfBytes : kWorthAThread) ? 1 : num_threads;
    for (const Step& step : op.post_steps) {
      if (step.other >= 0 && step.meeting != Meeting::kSame) {
        return absl::UnimplementedError("operands of its post-ops have another layout than the result");
      }
      absl::StrAppend(&description_, " + ", NameOf(step.op));
    }
    DepthwiseResults results;
    size_t num_done = 0;
    while (num_done < op.post_steps.size() && TakeStep(op.post_steps[num_done], &results)) ++num_done;
    steps_.assign(op.post_steps.begin() + static_cast<std::ptrdiff_t>(num_done), op.post_steps.end());
    const bool is_native = source_.IsInt8() ? target_.IsInt8() : source_.element == target_.element;
    is_direct_ = steps_.empty() && (is_native || target_.IsFloat());
    PF_RETURN_IF_ERROR(MakeLines(std::move(op), std::move(results), packed));
    PrepareSteps(types);
    return absl::OkStatus();
  }

  absl::Status Run(const RunContext& context) override {
    const WindowAxis& down = window_.y;
    const int64_t source_line = window_.x.input * window_.input_channels * source_.bytes();
    const char* const source = context.tensors[reads[0]];
    char* const target = context.tensors[writes[0]];
    const int64_t tasks = (down.output + at_once_ - 1) / at_once_;
#pragma omp parallel for num_threads(num_threads_) if (num_threads_ > 1)
    for (int64_t task = 0; task < window_.batch * tasks; ++task) {
      const int64_t image = task / tasks, position = task % tasks * at_once_;
      const int64_t count = std::min(at_once_, down.output - position);
      const char* lines[kMostDepthwiseTaps + kMostDepthwiseLines - 1];
      for (int64_t t = 0; t < down.taps + count - 1; ++t) {
        const int64_t y = down.First(position) + t * down.dilation;
        lines[t] = y < 0 || y >= down.input ? nullptr : source + (image * down.input + y) * source_line;
      }
      const int64_t at = (image * down.output + position) * line_;
      if (is_direct_) {
        lines_->Run(lines, count, target + at * target_.bytes());
        continue;
      }
      float* const scratch = reinterpret_cast<float*>(context.scratch) + omp_get_thread_num() * scratch_each_;
      lines_->Run(lines, count, reinterpret_cast<char*>(scratch));
      for (int64_t l = 0; l < count; ++l) {
        RunSteps(context, at + l * line_, scratch + l * line_, scratch + at_once_ * line_);
      }
      StoreFloats(target_, scratch, count * line_, target, at);
    }
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override { return num_threads_ * scratch_each_ * static_cast<int64_t>(sizeof(float)); }
  int64_t constant_bytes() const override {
    size_t floats = 0;
    for (const std::vector<float>& constants : constants_) floats += constants.size();
    return lines_->bytes() + static_cast<int64_t>(floats * sizeof(float));
  }
  std::string Describe() const override {
    return absl::StrCat(name, ": depthwise convolution", description_, " (lines of ", NameOf(source_.element), ")",
                        is_packed_ ? ", packed before" : "");
  }

 private:
  // Takes the step into `results` if possible. The order of `results` is slopes, then one clip.
  bool TakeStep(const Step& step, DepthwiseResults* results) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto channels = static_cast<size_t>(window_.input_channels);
    const bool is_clipped = results->least != -kInfinity || results->most != kInfinity;
    if (is_clipped) return false;
    switch (step.op) {
      case LoopOp::kRelu:
        results->least = 0;
        return true;
      case LoopOp::kClip:
        // The vector loops require bounds that are ordered and not NaN.
        if (!(step.alpha <= step.beta)) return false;
        results->least = step.alpha;
        results->most = step.beta;
        return true;
      case LoopOp::kLeakyRelu:
        if (!results->slopes.empty()) return false;
        results->slopes.assign(channels, step.alpha);
        return true;
      case LoopOp::kPrelu:
        if (!results->slopes.empty() || step.meeting != Meeting::kPerChannel || step.constants.size() != channels) {
          return false;
        }
        results->slopes = step.constants;
        return true;
      default:
        return false;
    }
  }

  absl::Status MakeLines(WeightedOp op, DepthwiseResults results, PackedWeights* packed) {
    const auto channels = static_cast<size_t>(window_.input_channels);
    const Element target = is_direct_ ? target_.element : Element::kFloat;
    if (!source_.IsInt8()) {
      const std::vector<float> weights = ScaledWeights(op);
      if (HasNonFinite(reinterpret_cast<const char*>(weights.data()), static_cast<int64_t>(weights.size()))) {
        return absl::UnimplementedError("nonfinite weights would turn the padding into NaN");
      }
      results.addends = op.bias;
      results.addends.resize(channels, 0.0f);
      lines_ = std::make_unique<DepthwiseLines>(window_.x, window_.input_channels, source_.element, target, weights,
                                                results);
      return absl::OkStatus();
    }
    PF_ASSIGN_OR_RETURN(const EightBitWeights weights, TakeWeights(&op, packed));
    results.addends = op.bias;
    results.addends.resize(channels, 0.0f);
    results.factors = weights.scales;
    for (float& factor : results.factors) factor *= source_.scale;
    if (is_direct_ && target_.IsInt8()) {
      const float factor = 1.0f / target_.scale;
      const float first = target_.element == Element::kU8 ? 0.0f : -127.0f;
      const float last = target_.element == Element::kU8 ? 255.0f : 127.0f;
      for (size_t c = 0; c < channels; ++c) results.factors[c] *= factor, results.addends[c] *= factor;
      results.least = std::min(std::max(results.least * factor, first), last);
      results.most = std::min(std::max(results.most * factor, first), last);
    }
    lines_ = std::make_unique<DepthwiseLines>(window_.x, window_.input_channels, source_.element, target,
                                              weights.values, results);
    return absl::OkStatus();
  }

  // Returns the 8-bit weights, with the bias of the op corrected for the quantisation error. Uses cached facts if there
  // are any.
  absl::StatusOr<EightBitWeights> TakeWeights(WeightedOp* op, PackedWeights* packed) {
    if (packed == nullptr) return QuantizeAndCorrect(op);
    const std::string key = PackingKey(*op, source_.element), values_key = absl::StrCat(key, kValuesSuffix);
    const std::optional<WeightFacts> facts = FindFacts(*op, key, packed);
    const std::optional<PackedBytes> values = packed->Find(values_key);
    if (facts.has_value() && !facts->scales.empty() && values.has_value() &&
        values->bytes.size() == static_cast<size_t>(op->weights.num_elements())) {
      if (facts->bias.has_value()) op->bias = *facts->bias;
      is_packed_ = true;
      const auto* first = reinterpret_cast<const int8_t*>(values->bytes.data());
      return EightBitWeights{std::vector<int8_t>(first, first + values->bytes.size()), facts->scales};
    }
    PF_ASSIGN_OR_RETURN(EightBitWeights weights, QuantizeAndCorrect(op));
    WeightFacts found;
    found.scales = weights.scales;
    found.bias = op->bias;
    KeepFacts(found, key, packed);
    auto kept = std::make_shared<const std::vector<int8_t>>(weights.values);
    const absl::string_view bytes(reinterpret_cast<const char*>(kept->data()), kept->size());
    packed->Keep(values_key, {bytes, std::move(kept)});
    return weights;
  }

  void PrepareSteps(const StorageTypes& types) {
    line_ = window_.x.output * window_.input_channels;
    at_once_ = IsOfTwoLines(window_) ? kMostDepthwiseLines : 1;
    const auto channels = static_cast<size_t>(window_.input_channels);
    bool has_operands = false;
    for (const Step& step : steps_) {
      std::vector<float>& constants = constants_.emplace_back();
      other_types_.push_back(types.Of(step.other));
      if (step.other >= 0) {
        has_operands = true;
        reads.push_back(step.other);
      } else if (!step.constants.empty()) {
        // Repeat the constants over a whole line.
        constants.resize(static_cast<size_t>(line_));
        for (size_t i = 0; i < constants.size(); ++i) {
          constants[i] = step.constants[step.constants.size() == 1 ? 0 : i % channels];
        }
      }
    }
    // The memory of each thread is aligned to a cache line.
    if (!is_direct_) scratch_each_ = (line_ * (at_once_ + (has_operands ? 1 : 0)) + 15) / 16 * 16;
  }

  // Runs the steps over a line. `at` is the offset of the line's first element in the result. `operands` has room for
  // another line if a step needs it.
  void RunSteps(const RunContext& context, int64_t at, float* line, float* operands) const {
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      const float* operand = constants_[s].empty() ? nullptr : constants_[s].data();
      if (step.other >= 0) {
        LoadFloats(other_types_[s], context.tensors[step.other], at, line_, operands);
        operand = operands;
      }
      RunLoop(step.op, line_, line, operand, step.alpha, step.beta, line);
    }
  }

  WindowGeometry window_;
  StorageType source_, target_;
  std::vector<Step> steps_;                    // Steps that run over lines.
  std::vector<StorageType> other_types_;       // By step.
  std::vector<std::vector<float>> constants_;  // By step.
  std::unique_ptr<DepthwiseLines> lines_;
  std::string description_;
  bool is_direct_ = false;  // Lines are written directly to the result.
  bool is_packed_ = false;  // Cached facts about the weights are used.
  int num_threads_ = 1;
  int64_t at_once_ = 1;                  // Lines per task.
  int64_t line_ = 0, scratch_each_ = 0;  // Elements of a line; floats per thread.
};

}  // namespace

bool IsOwnDepthwise(const ParsedNode& parsed, Element source) {
  const WindowGeometry& window = parsed.window;
  if (parsed.kind != NodeKind::kConvolution || window.groups <= 1 || window.groups != window.input_channels ||
      window.groups != window.output_channels || window.y.taps != window.x.taps || !HasDepthwiseLines(window.x) ||
      !HasDepthwiseLines(source)) {
    return false;
  }
  const int64_t channels = window.input_channels;
  switch (source) {
    case Element::kFloat:
      return channels <= (IsOfTwoLines(window) ? kFewChannelsOfFloats : kFewChannelsOfSingleLines);
    case Element::kBf16:
      // Without an instruction for it, rounding to bfloat16 takes half of the time.
      return channels <= kFewChannelsOfBf16 && IsOfTwoLines(window) && HasBf16Instructions();
    case Element::kU8:
    case Element::kS8:
      return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Piece>> MakeDepthwise(WeightedOp op, const StorageTypes& types, int num_threads,
                                                     PackedWeights* packed) {
  auto piece = std::make_unique<Depthwise>();
  PF_RETURN_IF_ERROR(piece->Init(std::move(op), types, num_threads, packed));
  return std::unique_ptr<Piece>(std::move(piece));
}

}  // namespace onednn
}  // namespace permafrost

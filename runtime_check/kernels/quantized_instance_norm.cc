// QuantizedInstanceNorm: normalises the codes of each channel of each image to mean 0 and variance 1.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {
namespace {

struct InstanceNormState : public KernelState {
  int64_t batch = 0, pixels = 0, channels = 0;
  bool range_is_given = false;
  Range given;
  float epsilon = 0, min_separation = 0;
};

// Statistics of one channel of one image, in codes, not in the numbers that they represent.
struct ChannelCodes {
  int64_t sum = 0, squares = 0;
  uint8_t least = 255, most = 0;
  float mean = 0, scale = 0;  // A code is mapped to (code - mean) * scale.
};

absl::Status PrepareInstanceNorm(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 1, 2));
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<InstanceNormState>();
  PF_ASSIGN_OR_RETURN(state->range_is_given, BoolAttr(node, "output_range_given"));
  PF_ASSIGN_OR_RETURN(state->given.min, FloatAttr(node, "given_y_min"));
  PF_ASSIGN_OR_RETURN(state->given.max, FloatAttr(node, "given_y_max"));
  PF_ASSIGN_OR_RETURN(state->epsilon, FloatAttr(node, "variance_epsilon"));
  PF_ASSIGN_OR_RETURN(state->min_separation, FloatAttr(node, "min_separation"));
  if (state->range_is_given && !(state->given.max > state->given.min)) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'given_y_max' is ", state->given.max,
                                                   ", expected more than 'given_y_min', ", state->given.min));
  }
  state->batch = input.dim(0);
  state->pixels = ProductOfDims(input, 1, 3);
  state->channels = input.dim(3);
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(const int64_t count, input.CheckedNumElements());
  const int64_t channels = count == 0 ? 0 : count / state->pixels;
  PF_RETURN_IF_ERROR(parts.Add(channels, sizeof(ChannelCodes)).status());
  parts.Request(context);
  context->SetOutputShape(0, input);
  SetRangeOutputShapes(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Computes the statistics of the channels of one image.
void Measure(const InstanceNormState& state, const uint8_t* codes, float step, ChannelCodes* channels) {
  std::fill_n(channels, state.channels, ChannelCodes());
  for (int64_t i = 0; i < state.pixels * state.channels; ++i) {
    ChannelCodes& channel = channels[i % state.channels];
    channel.sum += codes[i];
    channel.squares += static_cast<int64_t>(codes[i]) * codes[i];
    channel.least = std::min(channel.least, codes[i]);
    channel.most = std::max(channel.most, codes[i]);
  }
  const auto count = static_cast<double>(state.pixels);
  for (int64_t c = 0; c < state.channels; ++c) {
    const double mean = static_cast<double>(channels[c].sum) / count;
    const double variance = std::max(0.0, static_cast<double>(channels[c].squares) / count - mean * mean);
    channels[c].mean = static_cast<float>(mean);
    channels[c].scale = static_cast<float>(step / std::sqrt(variance * step * step + state.epsilon));
  }
}

absl::Status ComputeInstanceNorm(ComputeContext* context) {
  const auto& state = context->state<InstanceNormState>();
  const Range from = RangeInput(*context, 1);
  PF_RETURN_IF_ERROR(CheckRange(from, "x"));
  const auto* codes = context->input_bits<uint8_t>(0);
  auto* output = context->output_bits<uint8_t>(0);
  const int64_t image = state.pixels * state.channels;
  if (context->output_shape(0).num_elements() == 0) {
    SetRangeOutput(context, state.range_is_given ? state.given : Range{0, state.min_separation});
    return absl::OkStatus();
  }
  auto* channels = reinterpret_cast<ChannelCodes*>(context->scratch());
  const float step = (from.max - from.min) / 255;
  Range to = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for (int64_t n = 0; n < state.batch; ++n) {
    Measure(state, codes + n * image, step, channels + n * state.channels);
    for (int64_t c = 0; c < state.channels; ++c) {
      const ChannelCodes& channel = channels[n * state.channels + c];
      to.min = std::min(to.min, (static_cast<float>(channel.least) - channel.mean) * channel.scale);
      to.max = std::max(to.max, (static_cast<float>(channel.most) - channel.mean) * channel.scale);
    }
  }
  if (state.range_is_given) {
    to = state.given;
  } else {
    to.max = std::max(to.max, to.min + state.min_separation);
  }
  const RealsToCodes<uint8_t> to_codes(to);
  for (int64_t n = 0; n < state.batch; ++n) {
    for (int64_t i = 0; i < image; ++i) {
      const ChannelCodes& channel = channels[n * state.channels + i % state.channels];
      output[n * image + i] = to_codes((static_cast<float>(codes[n * image + i]) - channel.mean) * channel.scale);
    }
  }
  SetRangeOutput(context, to);
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(QuantizedInstanceNorm) {
  return Kernel("(x - mean) / sqrt(variance + variance_epsilon), with statistics per image and channel, on codes")
      .Types<QUint8>("T")
      .Prepare(PrepareInstanceNorm)
      .Compute(ComputeInstanceNorm);
}

}  // namespace permafrost

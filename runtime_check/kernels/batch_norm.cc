// Batch normalisation: FusedBatchNorm, V2, V3 and BatchNormWithGlobalNormalization.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

struct BatchNormState : public KernelState {
  ImageLayout layout;
  float epsilon = 0;
  bool is_training = false;
  float average_factor = 1;  // Weight of the batch in the running averages; 1: the averages are those of the batch.
  int64_t batch = 0, pixels = 0, channels = 0;
  int64_t factor_part = 0;  // Offset in the scratch memory: one float per channel.

  int64_t num_pixels() const { return batch * pixels; }
};

absl::Status RequireChannels(PrepareContext* context, int i, int64_t channels) {
  PF_RETURN_IF_ERROR(RequireRank(context, i, 1));
  if (context->input_shape(i).dim(0) == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input 0 has ", channels, " channels, input ", i, " has ", context->input_shape(i).dim(0)));
}

absl::Status FinishPrepare(PrepareContext* context, std::unique_ptr<BatchNormState> state) {
  const Shape& input = context->input_shape(0);
  state->batch = input.dim(0);
  state->channels = input.dim(state->layout.channel);
  // The product may exceed int64 if the batch or the channels are empty.
  state->pixels = input.num_elements() == 0 ? 0 : input.dim(state->layout.height) * input.dim(state->layout.width);
  context->SetOutputShape(0, input);
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->factor_part, parts.Add(state->channels));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareFused(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  auto state = std::make_unique<BatchNormState>();
  PF_ASSIGN_OR_RETURN(state->layout, ReadImageLayout(context->node()));
  PF_ASSIGN_OR_RETURN(state->epsilon, FloatAttr(context->node(), "epsilon"));
  PF_ASSIGN_OR_RETURN(state->is_training, BoolAttr(context->node(), "is_training"));
  PF_ASSIGN_OR_RETURN(state->average_factor, FloatAttr(context->node(), "exponential_avg_factor"));
  const int64_t channels = context->input_shape(0).dim(state->layout.channel);
  const bool averages_are_read = !state->is_training || state->average_factor != 1;
  for (int i = 1; i < (averages_are_read ? 5 : 3); ++i) PF_RETURN_IF_ERROR(RequireChannels(context, i, channels));
  for (int i = 1; i < std::min(context->num_outputs(), 5); ++i) context->SetOutputShape(i, Shape{channels});
  if (context->num_outputs() > 5) context->SetOutputShape(5, Shape());
  return FinishPrepare(context, std::move(state));
}

absl::Status PrepareGlobal(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  auto state = std::make_unique<BatchNormState>();
  PF_ASSIGN_OR_RETURN(state->epsilon, FloatAttr(context->node(), "variance_epsilon"));
  for (int i = 1; i < 5; ++i) PF_RETURN_IF_ERROR(RequireChannels(context, i, context->input_shape(0).dim(3)));
  return FinishPrepare(context, std::move(state));
}

// Computes y = (x - mean) * factor + offset, channel by channel.
void Normalize(ComputeContext* context, const BatchNormState& state, const float* mean, const float* factor,
               const float* offset) {
  const InnerLoops& loops = BestInnerLoops();
  const float* x = context->input<float>(0);
  float* y = context->output<float>(0);
  const int64_t channels = state.channels, pixels = state.pixels;
  if (state.num_pixels() * channels == 0) return;
  if (state.layout.is_nchw()) {
    context->threads().ParallelFor(state.batch * channels, 1 + (32 << 10) / pixels, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i % channels;
        loops.normalize_all(pixels, x + i * pixels, mean[c], factor[c], offset[c], y + i * pixels);
      }
    });
    return;
  }
  context->threads().ParallelFor(state.num_pixels(), 1 + (32 << 10) / channels, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      loops.normalize(channels, x + i * channels, mean, factor, offset, y + i * channels);
    }
  });
}

// Computes the mean and variance of each channel over the batch; sums are doubles.
void Statistics(ComputeContext* context, const BatchNormState& state, float* mean, float* variance) {
  const float* x = context->input<float>(0);
  const bool nchw = state.layout.is_nchw();
  const double count = static_cast<double>(state.num_pixels());
  context->threads().ParallelFor(state.channels, 8, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t step = nchw ? 1 : state.channels;
      double sum = 0, squares = 0;
      for (int pass = 0; pass < 2; ++pass) {
        const double center = pass == 0 ? 0 : sum / count;
        for (int64_t n = 0; n < state.batch; ++n) {
          const float* first = x + n * state.pixels * state.channels + c * (nchw ? state.pixels : 1);
          for (int64_t p = 0; p < state.pixels; ++p) {
            const double value = first[p * step] - center;
            if (pass == 0) {
              sum += value;
            } else {
              squares += value * value;
            }
          }
        }
      }
      mean[c] = static_cast<float>(sum / count);
      variance[c] = static_cast<float>(squares / count);
    }
  });
}

absl::Status ComputeFused(ComputeContext* context) {
  const auto& state = context->state<BatchNormState>();
  const int64_t channels = state.channels;
  const float* scale = context->input<float>(1);
  float* factor = ScratchAt(context, state.factor_part);
  const float* mean = context->input<float>(3);
  const float* variance = context->input<float>(4);
  // Outputs 3 and 4 are for the gradient: the batch's statistics in training, else 0.
  float* saved_mean = context->output<float>(3);
  float* saved_variance = context->output<float>(4);
  if (context->num_outputs() > 5) *context->output<float>(5) = 0;  // Used by gradients on other devices.
  if (state.num_pixels() == 0) {
    for (int i = 1; i < 5; ++i) std::fill_n(context->output<float>(i), channels, i < 3 ? std::nanf("") : 0.f);
    return absl::OkStatus();
  }
  if (state.is_training) {
    Statistics(context, state, saved_mean, saved_variance);
    // The running variance is the unbiased estimate for the population.
    const double count = static_cast<double>(state.num_pixels());
    const float correction = static_cast<float>(count / std::max(count - 1, 1.0));
    const float w = state.average_factor;
    for (int64_t c = 0; c < channels; ++c) {
      const float old_mean = w == 1 ? 0.f : (1 - w) * mean[c];
      const float old_variance = w == 1 ? 0.f : (1 - w) * variance[c];
      context->output<float>(1)[c] = old_mean + w * saved_mean[c];
      context->output<float>(2)[c] = old_variance + w * correction * saved_variance[c];
    }
    mean = saved_mean;
    variance = saved_variance;
  } else {
    std::copy_n(mean, channels, context->output<float>(1));
    std::copy_n(variance, channels, context->output<float>(2));
    std::fill_n(saved_mean, channels, 0.f);
    std::fill_n(saved_variance, channels, 0.f);
  }
  for (int64_t c = 0; c < channels; ++c) factor[c] = scale[c] / std::sqrt(variance[c] + state.epsilon);
  Normalize(context, state, mean, factor, context->input<float>(2));
  return absl::OkStatus();
}

void NormalizeDoubles(ComputeContext* context, const BatchNormState& state, bool scales) {
  const double* x = context->input<double>(0);
  double* y = context->output<double>(0);
  const double *mean = context->input<double>(1), *variance = context->input<double>(2);
  const double *beta = context->input<double>(3), *gamma = context->input<double>(4);
  for (int64_t i = 0; i < state.num_pixels() * state.channels; ++i) {
    const int64_t c = i % state.channels;
    const double factor = (scales ? gamma[c] : 1.0) / std::sqrt(variance[c] + static_cast<double>(state.epsilon));
    y[i] = (x[i] - mean[c]) * factor + beta[c];
  }
}

absl::Status ComputeGlobal(ComputeContext* context) {
  const auto& state = context->state<BatchNormState>();
  PF_ASSIGN_OR_RETURN(const bool scales, BoolAttr(context->node(), "scale_after_normalization"));
  if (context->input_at(0).dtype == DType::kDouble) {
    NormalizeDoubles(context, state, scales);
    return absl::OkStatus();
  }
  const float* variance = context->input<float>(2);
  const float* gamma = context->input<float>(4);
  float* factor = ScratchAt(context, state.factor_part);
  for (int64_t c = 0; c < state.channels; ++c) {
    factor[c] = (scales ? gamma[c] : 1.f) / std::sqrt(variance[c] + state.epsilon);
  }
  Normalize(context, state, context->input<float>(1), factor, context->input<float>(3));
  return absl::OkStatus();
}

// Defines FusedBatchNorm and its later versions, which differ only in their types.
Kernel FusedKernel() {
  return Kernel("y = (x - mean) * scale / sqrt(variance + epsilon) + offset, per channel")
      .InPlace(0)
      .Prepare(PrepareWidened<PrepareFused>)
      .Compute(ComputeWidened<ComputeFused>);
}

}  // namespace

DEFINE_KERNEL(FusedBatchNorm) { return FusedKernel().Types<float>("T"); }
DEFINE_KERNEL(FusedBatchNormV2) { return FusedKernel().Types<float, Half, BFloat16>("T").Types<float>("U"); }
DEFINE_KERNEL(FusedBatchNormV3) { return FusedKernel().Types<float, Half, BFloat16>("T").Types<float>("U"); }

DEFINE_KERNEL(BatchNormWithGlobalNormalization) {
  return Kernel("result = (t - m) * gamma / sqrt(v + epsilon) + beta, per channel")
      .Types<float, double, Half>("T")
      .InPlace(0)
      .Prepare(PrepareWidened<PrepareGlobal>)
      .Compute(ComputeWidened<ComputeGlobal>);
}

}  // namespace permafrost

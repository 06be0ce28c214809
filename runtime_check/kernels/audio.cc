// AudioSpectrogram and Mfcc: features of audio for speech models.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/fourier.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

constexpr double kPi = 3.14159265358979323846;

// --- AudioSpectrogram ------------------------------------------------------------------------------------------------

struct SpectrogramState : KernelState {
  std::vector<double> window;  // Periodic Hann window.
  int64_t stride = 1;
  int64_t points = 0;  // Points of the transform: the window, padded with zeros to a power of 2.
  int64_t samples = 0, channels = 0, slices = 0;
  int64_t lanes = 1;  // Slices that are transformed together.
  bool squared = false;
  std::optional<RealTransform<double>> transform;
  int64_t results_part = 0, work_part = 0;  // Offsets in the scratch memory.
};

absl::Status PrepareSpectrogram(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  constexpr int64_t kLongest = 1 << 24;
  PF_ASSIGN_OR_RETURN(const int64_t size, IntAttr(context->node(), "window_size"));
  PF_ASSIGN_OR_RETURN(const int64_t stride, IntAttr(context->node(), "stride"));
  if (size < 2 || size > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'window_size' is ", size, ", expected 2 to ", kLongest));
  }
  if (stride < 1) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'stride' is ", stride, ", expected at least 1"));
  }
  auto state = std::make_unique<SpectrogramState>();
  PF_ASSIGN_OR_RETURN(state->squared, BoolAttr(context->node(), "magnitude_squared"));
  state->stride = stride;
  state->samples = context->input_shape(0).dim(0);
  state->channels = context->input_shape(0).dim(1);
  state->slices = state->samples < size ? 0 : 1 + (state->samples - size) / stride;
  state->points = 1;
  while (state->points < size) state->points *= 2;
  state->window.resize(size);
  for (int64_t i = 0; i < size; ++i) state->window[i] = 0.5 - 0.5 * std::cos(2 * kPi * i / size);
  ScratchParts parts;
  state->transform.emplace(state->points);
  constexpr int64_t kMostTogether = 1 << 12;  // Points, so that the work memory stays in the second-level cache.
  state->lanes = state->points > kMostTogether ? 1 : std::clamp<int64_t>(state->slices, 1, kFourierLanes);
  PF_RETURN_IF_ERROR(parts.Add(state->points * state->lanes, sizeof(double)).status());
  PF_ASSIGN_OR_RETURN(state->results_part,
                      parts.Add(state->transform->results() * state->lanes, sizeof(std::complex<double>)));
  PF_ASSIGN_OR_RETURN(state->work_part, parts.Add(state->transform->work_size() * state->lanes, sizeof(double)));
  parts.Request(context);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({state->channels, state->slices, state->points / 2 + 1})));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeSpectrogram(ComputeContext* context) {
  const auto& state = context->state<SpectrogramState>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const int64_t size = static_cast<int64_t>(state.window.size());
  double* points = reinterpret_cast<double*>(context->scratch());
  auto* results = reinterpret_cast<std::complex<double>*>(context->scratch() + state.results_part);
  auto* work = reinterpret_cast<double*>(context->scratch() + state.work_part);
  const int64_t num_results = state.transform->results();
  float* output = context->output<float>(0);
  for (int64_t channel = 0; channel < state.channels; ++channel) {
    for (int64_t first = 0; first < state.slices && !RunIsCancelled(); first += state.lanes) {
      const int64_t lanes = std::min(state.lanes, state.slices - first);
      for (int64_t l = 0; l < lanes; ++l) {
        const float* samples = context->input<float>(0) + (first + l) * state.stride * state.channels + channel;
        double* slice = points + l * state.points;
        for (int64_t i = 0; i < size; ++i) slice[i] = samples[i * state.channels] * state.window[i];
        std::fill(slice + size, slice + state.points, 0.0);
      }
      state.transform->Forward(lanes, points, state.points, results, num_results, work);
      for (int64_t i = 0; i < lanes * num_results; ++i) {
        const auto power = static_cast<float>(std::norm(results[i]));
        *output++ = state.squared ? power : std::sqrt(power);
      }
    }
  }
  return absl::OkStatus();
}

// --- Mfcc ------------------------------------------------------------------------------------------------------------

// Converts a frequency to the mel scale, on which equal steps sound equal.
double MelOf(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

struct MfccState : KernelState {
  // The bins of the spectrum between the limits. Bin first_bin + i lies between the centres of the filters upper[i] - 1
  // and upper[i] (counted from 0, where they exist); lower_share[i] is the weight of the lower filter.
  int64_t first_bin = 0;
  std::vector<int64_t> upper;
  std::vector<double> lower_share;
  int64_t filters = 0;
  std::vector<double> cosines;  // [coefficients, filters].
  int64_t rows = 0, bins = 0, coefficients = 0;
};

// Makes triangular filters at equal distances on the mel scale, each from the centre of its left neighbour to the
// centre of its right one.
absl::Status MakeFilters(double lowest, double highest, double sample_rate, MfccState* state) {
  const double hertz_per_bin = 0.5 * sample_rate / static_cast<double>(state->bins - 1);
  const double first = 1.5 + lowest / hertz_per_bin, last = highest / hertz_per_bin;
  if (!(last < static_cast<double>(state->bins))) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'upper_frequency_limit' is ", highest,
                                                   ", expected at most half of the sample rate, ", sample_rate));
  }
  state->first_bin = static_cast<int64_t>(std::min(first, static_cast<double>(state->bins)));
  const double base = MelOf(lowest), step = (MelOf(highest) - base) / static_cast<double>(state->filters + 1);
  const auto centre = [&](int64_t filter) { return base + step * static_cast<double>(filter + 1); };
  int64_t upper = 0;
  for (int64_t bin = state->first_bin; bin <= static_cast<int64_t>(last); ++bin) {
    const double mel = MelOf(static_cast<double>(bin) * hertz_per_bin);
    while (upper < state->filters && centre(upper) < mel) ++upper;
    const double left = upper == 0 ? base : centre(upper - 1);
    state->upper.push_back(upper);
    state->lower_share.push_back((centre(upper) - mel) / (centre(upper) - left));
  }
  return absl::OkStatus();
}

absl::Status PrepareMfcc(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 3));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  PF_ASSIGN_OR_RETURN(const int64_t sample_rate, IntegerInput(context, 1));
  PF_ASSIGN_OR_RETURN(const float highest, FloatAttr(context->node(), "upper_frequency_limit"));
  PF_ASSIGN_OR_RETURN(const float lowest, FloatAttr(context->node(), "lower_frequency_limit"));
  auto state = std::make_unique<MfccState>();
  PF_ASSIGN_OR_RETURN(state->filters, IntAttr(context->node(), "filterbank_channel_count"));
  PF_ASSIGN_OR_RETURN(state->coefficients, IntAttr(context->node(), "dct_coefficient_count"));
  const Shape& input = context->input_shape(0);
  state->rows = ProductOfDims(input, 0, 2);
  state->bins = input.dim(2);
  constexpr int64_t kMostFilters = 1 << 12;
  if (state->filters < 1 || state->filters > kMostFilters) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'filterbank_channel_count' is ", state->filters, ", expected 1 to ", kMostFilters));
  }
  if (state->coefficients < 1 || state->coefficients > state->filters) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'dct_coefficient_count' is ", state->coefficients,
                                                   ", expected 1 to 'filterbank_channel_count', ", state->filters));
  }
  if (!(lowest >= 0 && highest > lowest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the frequencies are limited to ", lowest, " to ", highest, ", expected 0 or more to more"));
  }
  if (sample_rate < 1) {
    return absl::InvalidArgumentError(absl::StrCat("'sample_rate' is ", sample_rate, ", expected at least 1"));
  }
  if (state->bins < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the spectrogram has the shape ", input.ToString(), ", expected 2 or more frequencies"));
  }
  PF_RETURN_IF_ERROR(MakeFilters(lowest, highest, static_cast<double>(sample_rate), state.get()));
  const auto filters = static_cast<double>(state->filters);
  for (int64_t i = 0; i < state->coefficients; ++i) {
    for (int64_t j = 0; j < state->filters; ++j) {
      state->cosines.push_back(std::sqrt(2 / filters) *
                               std::cos(static_cast<double>(i) * kPi / filters * (static_cast<double>(j) + 0.5)));
    }
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({input.dim(0), input.dim(1), state->coefficients})));
  context->RequestScratch(static_cast<size_t>(state->filters) * sizeof(double));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Applies the filters to the magnitudes, takes logarithms, and computes their cosine transform.
absl::Status ComputeMfcc(ComputeContext* context) {
  const auto& state = context->state<MfccState>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  constexpr double kSilence = 1e-12;
  double* sums = reinterpret_cast<double*>(context->scratch());
  float* output = context->output<float>(0);
  for (int64_t row = 0; row < state.rows; ++row) {
    const float* powers = context->input<float>(0) + row * state.bins + state.first_bin;
    std::fill_n(sums, state.filters, 0.0);
    for (size_t i = 0; i < state.upper.size(); ++i) {
      const double magnitude = std::sqrt(static_cast<double>(powers[i])), lower = magnitude * state.lower_share[i];
      if (state.upper[i] > 0) sums[state.upper[i] - 1] += lower;
      if (state.upper[i] < state.filters) sums[state.upper[i]] += magnitude - lower;
    }
    for (int64_t j = 0; j < state.filters; ++j) sums[j] = std::log(sums[j] < kSilence ? kSilence : sums[j]);
    for (int64_t i = 0; i < state.coefficients; ++i) {
      const double* cosines = state.cosines.data() + i * state.filters;
      double sum = 0;
      for (int64_t j = 0; j < state.filters; ++j) sum += cosines[j] * sums[j];
      *output++ = static_cast<float>(sum);
    }
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(AudioSpectrogram) {
  return Kernel(
             "the magnitudes, or squared magnitudes, of the spectra of windows of window_size samples, stride samples "
             "apart")
      .Prepare(PrepareSpectrogram)
      .Compute(ComputeSpectrogram);
}

DEFINE_KERNEL(Mfcc) {
  return Kernel("the mel-frequency cepstral coefficients of a spectrogram").Prepare(PrepareMfcc).Compute(ComputeMfcc);
}

}  // namespace permafrost

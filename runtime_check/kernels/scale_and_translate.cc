// ScaleAndTranslate: resizes images with one of eight kernels, as tf.image.resize with antialiasing does.
//
// Each output row is a weighted sum of a span of input rows, and each output column of a span of columns. Weights
// depend on the scale and translation, which are inputs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// --- Kernels of interpolation: weights by distance from the sample, in pixels. ---------------------------------------

template <int radius>
float Lanczos(float x) {
  constexpr float kPi = 3.14159265359f;
  x = std::abs(x);
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}

constexpr float kGaussianRadius = 1.5f;

float Gaussian(float x) {
  constexpr float kSigma = kGaussianRadius / 3;
  x = std::abs(x);
  return x >= kGaussianRadius ? 0 : std::exp(-x * x / (2 * kSigma * kSigma));
}

float Box(float x) {
  x = std::abs(x);
  return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

float Triangle(float x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

// Keys: "Cubic convolution interpolation for digital image processing", 1981.
float KeysCubic(float x) {
  x = std::abs(x);
  if (x >= 2) return 0;
  if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
  return (1.5f * x - 2.5f) * x * x + 1;
}

// Mitchell and Netravali: "Reconstruction filters in computer graphics", 1988.
float MitchellCubic(float x) {
  x = std::abs(x);
  if (x >= 2) return 0;
  if (x >= 1) return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

struct Interpolation {
  absl::string_view name;
  float (*weight)(float);
  float radius;
};

constexpr Interpolation kInterpolations[] = {
    {"lanczos1", &Lanczos<1>, 1},
    {"lanczos3", &Lanczos<3>, 3},
    {"lanczos5", &Lanczos<5>, 5},
    {"gaussian", &Gaussian, kGaussianRadius},
    {"box", &Box, 1},
    {"triangle", &Triangle, 1},
    {"keyscubic", &KeysCubic, 2},
    {"mitchellcubic", &MitchellCubic, 2},
};

// --- Spans -----------------------------------------------------------------------------------------------------------

// The span of input rows or columns for each output row or column.
struct Spans {
  int64_t size = 0;            // Weights per output; those past the span are 0.
  std::vector<int64_t> start;  // Per output.
  std::vector<float> weights;  // `size` per output.
  Reservation reservation;
};

absl::StatusOr<Spans> MakeSpans(const Interpolation& kernel, bool antialias, int64_t output_size, int64_t input_size,
                                float scale, float translation, MemoryBudget* budget) {
  const float inverse_scale = 1.0f / scale, inverse_translation = -inverse_scale * translation;
  // The kernel is widened to filter if the image is reduced.
  const float kernel_scale = antialias ? std::max(inverse_scale, 1.0f) : 1.0f;
  const double reach = std::ceil(static_cast<double>(kernel.radius) * kernel_scale);
  Spans spans;
  spans.size =
      reach < static_cast<double>(input_size) ? std::min(2 * static_cast<int64_t>(reach) + 1, input_size) : input_size;
  const absl::StatusOr<int64_t> count = Shape({output_size, spans.size}).CheckedNumElements();
  if (!count.ok() || *count > std::numeric_limits<int64_t>::max() / 16) {
    return absl::ResourceExhaustedError("too many weights of interpolation");
  }
  PF_ASSIGN_OR_RETURN(spans.reservation,
                      Reservation::Take(budget, *count * 4 + output_size * 8, "the weights of interpolation"));
  spans.start.assign(static_cast<size_t>(output_size), 0);
  spans.weights.assign(static_cast<size_t>(*count), 0);
  const float inverse_kernel_scale = 1.0f / kernel_scale;
  const auto clamp = [&](float x) {
    return x > 0 ? x < static_cast<float>(input_size - 1) ? static_cast<int64_t>(x) : input_size - 1 : int64_t{0};
  };
  for (int64_t i = 0; i < output_size; ++i) {
    const float sample = (static_cast<float>(i) + 0.5f) * inverse_scale + inverse_translation;
    if (!(sample >= 0 && sample <= static_cast<float>(input_size))) continue;  // Outside the image: all weights are 0.
    const int64_t begin = clamp(std::ceil(sample - kernel.radius * kernel_scale - 0.5f));
    const int64_t end =
        std::min(clamp(std::floor(sample + kernel.radius * kernel_scale - 0.5f)) + 1, begin + spans.size);
    float* weights = spans.weights.data() + i * spans.size;
    float total = 0;
    for (int64_t source = begin; source < end; ++source) {
      const float weight = kernel.weight((static_cast<float>(source) + 0.5f - sample) * inverse_kernel_scale);
      weights[source - begin] = weight;
      total += weight;
    }
    spans.start[static_cast<size_t>(i)] = begin;
    // TensorFlow's bound below which a sum counts as zero.
    const bool is_something = std::abs(total) >= 1000 * std::numeric_limits<float>::min();
    const float factor = is_something ? 1 / total : 0;
    for (int64_t source = begin; source < end; ++source) weights[source - begin] *= factor;
  }
  return spans;
}

struct ResizeState : KernelState {
  Interpolation kernel = kInterpolations[0];
  bool antialias = true;
};

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  for (const int i : {1, 2, 3}) {
    if (context->input_shape(i) != Shape({2})) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(), ", expected [2]"));
    }
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 1));
  const Shape& images = context->input_shape(0);
  if (size[0] <= 0 || size[1] <= 0 || images.dim(1) == 0 || images.dim(2) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("images of shape ", images.ToString(), " become ", size[0], " x ",
                                                   size[1], " pixels, expected at least one before and after"));
  }
  auto state = std::make_unique<ResizeState>();
  PF_ASSIGN_OR_RETURN(const std::string name, StringAttr(context->node(), "kernel_type"));
  PF_ASSIGN_OR_RETURN(state->antialias, BoolAttr(context->node(), "antialias"));
  const auto* found = std::find_if(std::begin(kInterpolations), std::end(kInterpolations),
                                   [&](const Interpolation& kernel) { return kernel.name == name; });
  if (found == std::end(kInterpolations)) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'kernel_type' is '", name,
                                                   "', expected lanczos1, lanczos3, lanczos5, gaussian, box, triangle, "
                                                   "keyscubic or mitchellcubic"));
  }
  state->kernel = *found;
  context->SetState(std::move(state));
  return SetCheckedShape(context, 0, Shape({images.dim(0), size[0], size[1], images.dim(3)}));
}

// Sums the rows first, into `rows`, which holds one row of the output, then its columns.
template <typename T>
void Resize(ComputeContext* context, const Spans& vertical, const Spans& horizontal, std::vector<float>* rows) {
  const Shape &in = context->input_shape(0), &out = context->output_shape(0);
  const T* input = context->input<T>(0);
  float* output = context->output<float>(0);
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels, out_row = out.dim(2) * channels;
  const int64_t in_image = in.dim(1) * in_row;
  const auto value = [](T x) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return ToFloat(x);
    } else {
      return static_cast<float>(x);
    }
  };
  for (int64_t n = 0; n < in.dim(0); ++n) {
    for (int64_t y = 0; y < out.dim(1); ++y) {
      const T* image = input + n * in_image;
      float* sums = rows->data();
      std::fill_n(sums, in_row, 0.0f);
      const float* weights = vertical.weights.data() + y * vertical.size;
      const int64_t start = vertical.start[static_cast<size_t>(y)];
      for (int64_t k = 0; k < std::min(vertical.size, in.dim(1) - start); ++k) {
        if (weights[k] == 0) continue;
        const T* row = image + (start + k) * in_row;
        for (int64_t i = 0; i < in_row; ++i) sums[i] += weights[k] * value(row[i]);
      }
      float* target = output + (n * out.dim(1) + y) * out_row;
      std::fill_n(target, out_row, 0.0f);
      for (int64_t x = 0; x < out.dim(2); ++x, target += channels) {
        const float* column_weights = horizontal.weights.data() + x * horizontal.size;
        const int64_t first = horizontal.start[static_cast<size_t>(x)];
        for (int64_t k = 0; k < std::min(horizontal.size, in.dim(2) - first); ++k) {
          const float* pixel = sums + (first + k) * channels;
          for (int64_t c = 0; c < channels; ++c) target[c] += column_weights[k] * pixel[c];
        }
      }
    }
  }
}

absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<ResizeState>();
  const Shape &in = context->input_shape(0), &out = context->output_shape(0);
  const float* scale = context->input<float>(2);
  const float* translation = context->input<float>(3);
  if (!(scale[0] > 0 && scale[1] > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'scale' is ", scale[0], " and ", scale[1], ", expected values above 0"));
  }
  if (out.num_elements() == 0) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const Spans vertical, MakeSpans(state.kernel, state.antialias, out.dim(1), in.dim(1), scale[0],
                                                      translation[0], &context->budget()));
  PF_ASSIGN_OR_RETURN(const Spans horizontal, MakeSpans(state.kernel, state.antialias, out.dim(2), in.dim(2), scale[1],
                                                        translation[1], &context->budget()));
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), in.dim(2) * in.dim(3) * 4, "a row of the image"));
  std::vector<float> row(static_cast<size_t>(in.dim(2) * in.dim(3)));
  DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t>(
      context->input_at(0).dtype,
      [&](auto tag) { Resize<typename decltype(tag)::type>(context, vertical, horizontal, &row); });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(ScaleAndTranslate) {
  return Kernel(
             "the images resampled: each pixel is a weighted sum of the input pixels around (position - translation) / "
             "scale")
      .TypeNumbers("T", {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16, DType::kInt32, DType::kInt64,
                         DType::kBFloat16, DType::kHalf, DType::kFloat, DType::kDouble})
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost

// Colours of images: RGBToHSV, HSVToRGB, AdjustContrastv2, AdjustHue and AdjustSaturation.
//
// The last dimension holds red, green and blue, or hue, saturation and value, all in [0, 1]. The formulas are those of
// TensorFlow, step by step, so that results agree to the last few bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"

namespace permafrost {
namespace {

// Minimum number of pixels per task.
constexpr int64_t kGrainPixels = 1 << 12;

template <typename T>
struct Colour {
  T first, second, third;
};

template <typename T>
Colour<T> ToHsv(T r, T g, T b) {
  const T value = std::max(r, std::max(g, b)), range = value - std::min(r, std::min(g, b));
  const T saturation = value > 0 ? range / value : T{0};
  if (!(range > 0)) return {T{0}, saturation, value};
  const T scale = T{1} / (T{6} * range);
  T hue;
  if (r == value) {
    hue = scale * (g - b);
  } else if (g == value) {
    hue = scale * (b - r) + static_cast<T>(2.0 / 6.0);
  } else {
    hue = scale * (r - g) + static_cast<T>(4.0 / 6.0);
  }
  return {hue < 0 ? hue + T{1} : hue, saturation, value};
}

template <typename T>
Colour<T> ToRgb(T hue, T saturation, T value) {
  const auto unit = [](T x) { return std::min(std::max(x, T{0}), T{1}); };
  const T sector = hue * T{6};
  const T r = unit(std::abs(sector - T{3}) - T{1});
  const T g = unit(T{2} - std::abs(sector - T{2}));
  const T b = unit(T{2} - std::abs(sector - T{4}));
  const T white = T{1} - saturation;
  return {(white + saturation * r) * value, (white + saturation * g) * value, (white + saturation * b) * value};
}

absl::Status RequireThreeChannels(PrepareContext* context, int smallest_rank) {
  const Shape& shape = context->input_shape(0);
  if (shape.rank() < smallest_rank || shape.dim(shape.rank() - 1) != 3) {
    return absl::InvalidArgumentError(absl::StrCat("the images have the shape ", shape.ToString(), ", expected ",
                                                   smallest_rank, " dimensions or more, the last one of 3 colours"));
  }
  return SameShape(context);
}

absl::Status PrepareConversion(PrepareContext* context) { return RequireThreeChannels(context, 1); }

absl::Status PrepareAdjustment(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  return RequireThreeChannels(context, 3);
}

template <typename T, typename Function>
void ForEachPixel(ComputeContext* context, Function function) {
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  context->threads().ParallelFor(context->input_shape(0).num_elements() / 3, kGrainPixels,
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     const T* in = input + 3 * i;
                                     const Colour<T> result = function(in[0], in[1], in[2]);
                                     T* out = output + 3 * i;
                                     out[0] = result.first;
                                     out[1] = result.second;
                                     out[2] = result.third;
                                   }
                                 });
}

absl::Status ComputeToHsv(ComputeContext* context) {
  DispatchOn<float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForEachPixel<T>(context, &ToHsv<T>);
  });
  return absl::OkStatus();
}

absl::Status ComputeToRgb(ComputeContext* context) {
  DispatchOn<float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForEachPixel<T>(context, &ToRgb<T>);
  });
  return absl::OkStatus();
}

// --- Hue and saturation ----------------------------------------------------------------------------------------------

constexpr float kSectors = 6;

// The position of the colour on the wheel, in [0, 6), and its smallest and largest component.
struct Hue {
  float place, smallest, largest;
};

Hue HueOf(float r, float g, float b) {
  float largest, middle, smallest;
  int sector;
  const auto set = [&](float x, float y, float z, int number) {
    largest = x;
    middle = y;
    smallest = z;
    sector = number;
  };
  if (r < g) {
    if (b < r) {
      set(g, r, b, 1);
    } else if (b > g) {
      set(b, g, r, 3);
    } else {
      set(g, b, r, 2);
    }
  } else if (b < g) {
    set(r, g, b, 0);
  } else if (b > r) {
    set(b, r, g, 4);
  } else {
    set(r, b, g, 5);
  }
  if (largest == smallest) return {0, smallest, largest};
  const float part = (middle - smallest) / (largest - smallest);
  return {static_cast<float>(sector) + (sector % 2 == 0 ? part : 1 - part), smallest, largest};
}

Colour<float> FromHue(const Hue& hue) {
  const float whole = std::floor(hue.place);
  const int sector = whole >= 0 && whole < kSectors ? static_cast<int>(whole) : 5;
  const float part = hue.place - static_cast<float>(sector);
  const float middle = hue.smallest + (sector % 2 == 0 ? part : 1 - part) * (hue.largest - hue.smallest);
  switch (sector) {
    case 0:
      return {hue.largest, middle, hue.smallest};
    case 1:
      return {middle, hue.largest, hue.smallest};
    case 2:
      return {hue.smallest, hue.largest, middle};
    case 3:
      return {hue.smallest, middle, hue.largest};
    case 4:
      return {middle, hue.smallest, hue.largest};
    default:
      return {hue.largest, hue.smallest, middle};
  }
}

absl::Status ComputeAdjustHue(ComputeContext* context) {
  const float shift = context->input<float>(1)[0] * kSectors;
  ForEachPixel<float>(context, [shift](float r, float g, float b) {
    Hue hue = HueOf(r, g, b);
    hue.place += shift;
    // A shift is usually less than one turn, but may be large.
    if (!(std::abs(hue.place) < 2 * kSectors)) hue.place = std::fmod(hue.place, kSectors);
    while (hue.place < 0) hue.place += kSectors;
    while (hue.place >= kSectors) hue.place -= kSectors;
    return FromHue(hue);
  });
  return absl::OkStatus();
}

absl::Status ComputeAdjustSaturation(ComputeContext* context) {
  const float scale = context->input<float>(1)[0];
  ForEachPixel<float>(context, [scale](float r, float g, float b) {
    Colour<float> hsv = ToHsv(r, g, b);
    const float saturation = std::min(1.0f, std::max(0.0f, hsv.second * scale));
    const float chroma = saturation * hsv.third, base = hsv.third - chroma;
    const float place = hsv.first * kSectors;
    const float turn = place - 2 * std::floor(place / 2);
    const float other = chroma * (1 - std::abs(turn - 1));
    const float whole = std::floor(place);
    Colour<float> rgb = {0, 0, 0};
    if (whole == 0) rgb = {chroma, other, 0};
    if (whole == 1) rgb = {other, chroma, 0};
    if (whole == 2) rgb = {0, chroma, other};
    if (whole == 3) rgb = {0, other, chroma};
    if (whole == 4) rgb = {other, 0, chroma};
    if (whole == 5) rgb = {chroma, 0, other};
    return Colour<float>{rgb.first + base, rgb.second + base, rgb.third + base};
  });
  return absl::OkStatus();
}

// --- Contrast --------------------------------------------------------------------------------------------------------

absl::Status PrepareContrast(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  const Shape& shape = context->input_shape(0);
  if (shape.rank() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("the images have the shape ", shape.ToString(), ", expected [...,height,width,channels]"));
  }
  if (shape.num_elements() > 0) {
    context->RequestScratch(static_cast<size_t>(shape.dim(shape.rank() - 1)) * sizeof(double));
  }
  return SameShape(context);
}

// Computes (x - mean) * factor + mean, with the mean of each channel of each image.
absl::Status ComputeContrast(ComputeContext* context) {
  const Shape& shape = context->input_shape(0);
  if (shape.num_elements() == 0) return absl::OkStatus();
  const float factor = context->input<float>(1)[0];
  const float* input = context->input<float>(0);
  float* output = context->output<float>(0);
  const int64_t channels = shape.dim(shape.rank() - 1);
  const int64_t pixels = shape.dim(shape.rank() - 2) * shape.dim(shape.rank() - 3);
  double* means = reinterpret_cast<double*>(context->scratch());
  const int64_t image = pixels * channels;
  for (int64_t start = 0; start < shape.num_elements(); start += image) {
    std::fill_n(means, channels, 0.0);
    for (int64_t i = 0; i < image; i += channels) {
      for (int64_t c = 0; c < channels; ++c) means[c] += input[start + i + c];
    }
    for (int64_t c = 0; c < channels; ++c) means[c] /= static_cast<double>(pixels);
    for (int64_t i = 0; i < image; i += channels) {
      for (int64_t c = 0; c < channels; ++c) {
        const float mean = static_cast<float>(means[c]);
        output[start + i + c] = (input[start + i + c] - mean) * factor + mean;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(RGBToHSV) {
  return Kernel("RGB colours converted to HSV")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareWidened<PrepareConversion>)
      .Compute(ComputeWidened<ComputeToHsv>);
}
DEFINE_KERNEL(HSVToRGB) {
  return Kernel("HSV colours converted to RGB")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareWidened<PrepareConversion>)
      .Compute(ComputeWidened<ComputeToRgb>);
}
DEFINE_KERNEL(AdjustHue) {
  return Kernel("RGB colours with delta, a fraction of the full circle, added to their hue")
      .Types<float, Half>("T")
      .Prepare(PrepareWidened<PrepareAdjustment>)
      .Compute(ComputeWidened<ComputeAdjustHue>);
}
DEFINE_KERNEL(AdjustSaturation) {
  return Kernel("RGB colours with their saturation multiplied by scale, at most 1")
      .Types<float, Half>("T")
      .Prepare(PrepareWidened<PrepareAdjustment>)
      .Compute(ComputeWidened<ComputeAdjustSaturation>);
}
DEFINE_KERNEL(AdjustContrastv2) {
  return Kernel("(x - mean) * contrast_factor + mean, where mean is per image and channel")
      .Types<float, Half>("T")
      .Prepare(PrepareWidened<PrepareContrast>)
      .Compute(ComputeWidened<ComputeContrast>);
}

}  // namespace permafrost

// Implements RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of codes.
#include "runtime_check/kernels/integer/integer_resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr int kFractionBits = 10;
constexpr int64_t kUnit = 1 << kFractionBits;

absl::Status CheckSizes(const ResizeSizes& sizes) {
  // Positions with their fraction bits fit in int64_t, and in the 24 bits of a float's mantissa only below 2^24.
  constexpr int64_t kMostPixels = int64_t{1} << 31;
  const int64_t all[] = {sizes.batch,         sizes.input_height, sizes.input_width,
                         sizes.output_height, sizes.output_width, sizes.channels};
  for (const int64_t size : all) {
    if (size < 0 || size > kMostPixels) return absl::InvalidArgumentError("a size of the images is impossible");
  }
  const int64_t products[][4] = {{sizes.batch, sizes.input_height, sizes.input_width, sizes.channels},
                                 {sizes.batch, sizes.output_height, sizes.output_width, sizes.channels}};
  for (const auto& factors : products) {
    int64_t product = 2;  // Bytes of the widest code.
    for (const int64_t factor : factors) {
      if (__builtin_mul_overflow(product, std::max<int64_t>(factor, 1), &product)) {
        return absl::InvalidArgumentError("the images are too large");
      }
    }
  }
  if ((sizes.input_height == 0 && sizes.output_height > 0) || (sizes.input_width == 0 && sizes.output_width > 0)) {
    return absl::InvalidArgumentError("an image without pixels cannot be resized");
  }
  if (sizes.align_corners && sizes.half_pixel_centers) {
    return absl::InvalidArgumentError("'align_corners' and 'half_pixel_centers' exclude each other");
  }
  return absl::OkStatus();
}

}  // namespace

void IntegerResizeBilinear::Place(bool is_float, int64_t input, int64_t output, const ResizeSizes& sizes,
                                  std::vector<Position>* positions) {
  positions->resize(static_cast<size_t>(output));
  const bool aligns = sizes.align_corners && output > 1;
  for (int64_t i = 0; i < output; ++i) {
    Position& position = (*positions)[i];
    if (is_float) {
      const float scale = aligns ? static_cast<float>(input - 1) / static_cast<float>(output - 1)
                                 : static_cast<float>(input) / static_cast<float>(output);
      const float at =
          sizes.half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f : static_cast<float>(i) * scale;
      position.low = std::clamp<int64_t>(static_cast<int64_t>(std::floor(at)), 0, input - 1);
      position.high = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, input - 1);
      position.float_fraction = at - static_cast<float>(position.low);
      continue;
    }
    const int64_t scale =
        aligns ? (kUnit * (input - 1) + (output - 1) / 2) / (output - 1) : (kUnit * input + output / 2) / output;
    const int64_t at = sizes.half_pixel_centers ? i * scale + scale / 2 - kUnit / 2 : i * scale;
    position.low = std::clamp<int64_t>(at / kUnit, 0, input - 1);
    position.high = std::clamp<int64_t>((at + kUnit - 1) / kUnit, 0, input - 1);
    position.fraction = at - kUnit * position.low;
  }
}

absl::StatusOr<IntegerResizeBilinear> IntegerResizeBilinear::Make(CodeType type, const ResizeSizes& sizes) {
  PF_RETURN_IF_ERROR(CheckSizes(sizes));
  if (type == CodeType::kInt32) return absl::InvalidArgumentError("input: has type int32, expected 8 or 16 bits");
  IntegerResizeBilinear made;
  made.type_ = type;
  made.sizes_ = sizes;
  Place(type == CodeType::kUint8, sizes.input_height, sizes.output_height, sizes, &made.y_);
  Place(type == CodeType::kUint8, sizes.input_width, sizes.output_width, sizes, &made.x_);
  return made;
}

template <typename T>
void IntegerResizeBilinear::ComputeLines(const T* input, int64_t first, int64_t last, T* output) const {
  const int64_t channels = sizes_.channels;
  for (int64_t row = first; row < last; ++row) {
    const Position& y = y_[row % sizes_.output_height];
    const T* image = input + row / sizes_.output_height * sizes_.input_height * sizes_.input_width * channels;
    const T *low = image + y.low * sizes_.input_width * channels,
            *high = image + y.high * sizes_.input_width * channels;
    T* to = output + row * sizes_.output_width * channels;
    for (int64_t column = 0; column < sizes_.output_width; ++column, to += channels) {
      const Position& x = x_[column];
      const T *low_low = low + x.low * channels, *low_high = low + x.high * channels;
      const T *high_low = high + x.low * channels, *high_high = high + x.high * channels;
      if constexpr (std::is_same_v<T, uint8_t>) {
        const float p = y.float_fraction, q = x.float_fraction;
        for (int64_t c = 0; c < channels; ++c) {
          const float sum = static_cast<float>(low_low[c]) * (1.0f - p) * (1.0f - q) +
                            static_cast<float>(high_low[c]) * p * (1.0f - q) +
                            static_cast<float>(low_high[c]) * (1.0f - p) * q + static_cast<float>(high_high[c]) * p * q;
          to[c] = static_cast<T>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
        }
      } else {
        const int64_t p = y.fraction, q = x.fraction;
        constexpr int64_t kWhole = kUnit * kUnit;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t sum = low_low[c] * (kUnit - p) * (kUnit - q) + high_low[c] * p * (kUnit - q) +
                              low_high[c] * (kUnit - p) * q + high_high[c] * p * q;
          to[c] = static_cast<T>((sum + (sum > 0 ? kWhole / 2 : -(kWhole / 2))) / kWhole);
        }
      }
    }
  }
}

void IntegerResizeBilinear::Compute(const void* input, int64_t first, int64_t last, void* output) const {
  if (type_ == CodeType::kInt8) {
    ComputeLines(static_cast<const int8_t*>(input), first, last, static_cast<int8_t*>(output));
  } else if (type_ == CodeType::kUint8) {
    ComputeLines(static_cast<const uint8_t*>(input), first, last, static_cast<uint8_t*>(output));
  } else {
    ComputeLines(static_cast<const int16_t*>(input), first, last, static_cast<int16_t*>(output));
  }
}

absl::StatusOr<IntegerResizeNearest> IntegerResizeNearest::Make(CodeType type, const ResizeSizes& sizes) {
  PF_RETURN_IF_ERROR(CheckSizes(sizes));
  IntegerResizeNearest made;
  made.element_size_ = BytesOf(type);
  made.sizes_ = sizes;
  const auto place = [&](int64_t input, int64_t output, std::vector<int64_t>* positions) {
    const float scale = sizes.align_corners && output > 1
                            ? static_cast<float>(input - 1) / static_cast<float>(output - 1)
                            : static_cast<float>(input) / static_cast<float>(output);
    for (int64_t i = 0; i < output; ++i) {
      const float at = (static_cast<float>(i) + (sizes.half_pixel_centers ? 0.5f : 0.0f)) * scale;
      const float rounded = sizes.align_corners ? std::round(at) : std::floor(at);
      positions->push_back(std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, input - 1));
    }
  };
  place(sizes.input_height, sizes.output_height, &made.y_);
  place(sizes.input_width, sizes.output_width, &made.x_);
  return made;
}

void IntegerResizeNearest::Compute(const void* input, int64_t first, int64_t last, void* output) const {
  const int64_t pixel = sizes_.channels * element_size_;
  auto* to = static_cast<char*>(output) + first * sizes_.output_width * pixel;
  for (int64_t row = first; row < last; ++row) {
    const int64_t image = row / sizes_.output_height, line = y_[row % sizes_.output_height];
    const char* from =
        static_cast<const char*>(input) + (image * sizes_.input_height + line) * sizes_.input_width * pixel;
    for (const int64_t column : x_) {
      std::memcpy(to, from + column * pixel, static_cast<size_t>(pixel));
      to += pixel;
    }
  }
}

}  // namespace permafrost

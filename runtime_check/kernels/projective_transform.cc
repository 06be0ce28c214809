// ImageProjectiveTransformV2 and V3: translate, rotate, shear or project images.
//
// Pixel (x, y) of the output is read at (a x + b y + c, d x + e y + f) / (g x + h y + 1) of the input. Positions
// outside the input are filled by one of four modes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// Minimum number of pixels per task.
constexpr int64_t kGrainPixels = 1 << 10;

enum class Fill { kConstant, kReflect, kWrap, kNearest };

struct TransformState : KernelState {
  bool is_bilinear = false;
  Fill fill = Fill::kConstant;
};

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 2));
  if (context->num_inputs() > 3) PF_RETURN_IF_ERROR(RequireRank(context, 3, 0));
  const Shape &images = context->input_shape(0), &transforms = context->input_shape(1);
  if ((transforms.dim(0) != 1 && transforms.dim(0) != images.dim(0)) || transforms.dim(1) != 8) {
    return absl::InvalidArgumentError(absl::StrCat("the transforms have the shape ", transforms.ToString(),
                                                   ", expected [1,8] or [", images.dim(0), ",8]"));
  }
  auto state = std::make_unique<TransformState>();
  PF_ASSIGN_OR_RETURN(const std::string interpolation, StringAttr(context->node(), "interpolation"));
  if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'interpolation' is '", interpolation, "', expected NEAREST or BILINEAR"));
  }
  state->is_bilinear = interpolation == "BILINEAR";
  PF_ASSIGN_OR_RETURN(const std::string fill, StringAttr(context->node(), "fill_mode"));
  if (fill == "REFLECT") {
    state->fill = Fill::kReflect;
  } else if (fill == "WRAP") {
    state->fill = Fill::kWrap;
  } else if (fill == "NEAREST") {
    state->fill = Fill::kNearest;
  } else if (fill != "CONSTANT") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'fill_mode' is '", fill, "', expected CONSTANT, REFLECT, WRAP or NEAREST"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 2));
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
    return absl::InvalidArgumentError("'output_shape' is expected to be a height and a width above 0");
  }
  context->SetState(std::move(state));
  return SetCheckedShape(context, 0, Shape({images.dim(0), size[0], size[1], images.dim(3)}));
}

float Clamped(float x, float largest) { return x < 0 ? 0 : x > largest ? largest : x; }

// Maps the coordinate x, which may be outside, into an axis of `length` pixels. The steps are those of TensorFlow;
// integers are computed as floats, which represent the coordinates of any image exactly.
float Mapped(float x, int64_t length, Fill fill) {
  if (fill == Fill::kConstant) return x;
  const float size = static_cast<float>(length), last = size - 1;
  if (fill == Fill::kNearest) return Clamped(x, last);
  if (length <= 1 && (x < 0 || x > last)) return 0;
  if (fill == Fill::kReflect) {
    const float twice = 2 * size;
    if (x < 0) {
      x = twice * std::trunc(-x / twice) + x;
      x = x < -size ? x + twice : -x - 1;
    } else if (x > last) {
      x -= twice * std::trunc(x / twice);
      if (x >= size) x = twice - x - 1;
    }
  } else if (x < 0) {
    x += size * (std::trunc(-x / last) + 1);
  } else if (x > last) {
    x -= size * std::trunc(x / last);
  }
  return Clamped(x, last);
}

template <typename T>
float AsFloat(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return ToFloat(x);
  } else {
    return static_cast<float>(x);
  }
}

template <typename T>
T FromFloat(float x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(x);
  } else if constexpr (std::is_integral_v<T>) {
    // Interpolated values are in the range of the pixels; only a fill value can be outside.
    const double lowest = static_cast<double>(std::numeric_limits<T>::min());
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return x >= end ? std::numeric_limits<T>::max() : x >= lowest ? static_cast<T>(x) : std::numeric_limits<T>::min();
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
void Transform(ComputeContext* context) {
  const auto& state = context->state<TransformState>();
  const Shape &in = context->input_shape(0), &out = context->output_shape(0);
  const T* input = context->input<T>(0);
  const float* transforms = context->input<float>(1);
  const T fill_value = FromFloat<T>(context->num_inputs() > 3 ? context->input<float>(3)[0] : 0);
  T* output = context->output<T>(0);
  const int64_t height = in.dim(1), width = in.dim(2), channels = in.dim(3);
  const bool is_shared = context->input_shape(1).dim(0) == 1;
  const int64_t pixels = out.dim(0) * out.dim(1) * out.dim(2);
  context->threads().ParallelFor(pixels, kGrainPixels, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / (out.dim(1) * out.dim(2));
      const float to_x = static_cast<float>(i % out.dim(2)), to_y = static_cast<float>(i / out.dim(2) % out.dim(1));
      const float* t = transforms + (is_shared ? 0 : 8 * image);
      T* pixel = output + i * channels;
      const float projection = t[6] * to_x + t[7] * to_y + 1;
      if (projection == 0) {
        std::fill_n(pixel, channels, fill_value);
        continue;
      }
      const float x = Mapped((t[0] * to_x + t[1] * to_y + t[2]) / projection, width, state.fill);
      const float y = Mapped((t[3] * to_x + t[4] * to_y + t[5]) / projection, height, state.fill);
      const T* from = input + image * height * width * channels;
      const auto read = [&](float row, float column, int64_t c) {
        if (!(row >= 0 && row < static_cast<float>(height) && column >= 0 && column < static_cast<float>(width))) {
          return fill_value;
        }
        return from[(static_cast<int64_t>(row) * width + static_cast<int64_t>(column)) * channels + c];
      };
      if (!state.is_bilinear) {
        for (int64_t c = 0; c < channels; ++c) pixel[c] = read(std::round(y), std::round(x), c);
        continue;
      }
      const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
      for (int64_t c = 0; c < channels; ++c) {
        const float upper = (right - x) * AsFloat(read(top, left, c)) + (x - left) * AsFloat(read(top, right, c));
        const float lower = (right - x) * AsFloat(read(bottom, left, c)) + (x - left) * AsFloat(read(bottom, right, c));
        pixel[c] = FromFloat<T>((bottom - y) * upper + (y - top) * lower);
      }
    }
  });
}

absl::Status Compute(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  DispatchOn<uint8_t, int32_t, int64_t, Half, BFloat16, float, double>(
      context->input_at(0).dtype, [&](auto tag) { Transform<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

Kernel TransformKernel() {
  return Kernel("the images transformed: pixel (x, y) is read at (a x + b y + c, d x + e y + f) / (g x + h y + 1)")
      .TypeNumbers("dtype", {DType::kUint8, DType::kInt32, DType::kInt64, DType::kHalf, DType::kBFloat16, DType::kFloat,
                             DType::kDouble})
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace

DEFINE_KERNEL(ImageProjectiveTransformV2) { return TransformKernel(); }
DEFINE_KERNEL(ImageProjectiveTransformV3) { return TransformKernel(); }

}  // namespace permafrost

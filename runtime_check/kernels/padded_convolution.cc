// FusedPadConv2D and FusedResizeAndPadConv2D: a convolution of an image that is first resized and then mirror-padded.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/convolution.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/sampling.h"
#include "runtime_check/kernels/stand_in.h"

namespace permafrost {
namespace {

struct PaddedState : public KernelState {
  Convolution convolution;
  int64_t batch = 0, height = 0, width = 0, channels = 0;  // Shape of the input.
  // The sources of the lines and columns of the padded image: one tap each. Empty if the image has no elements.
  std::vector<Tap> y, x;
  bool interpolates = false;
  int64_t image_part = 0;  // Offset in the scratch memory: the padded image.
};

// Larger positions are not exact in float.
constexpr int64_t kLargestSide = 1 << 24;

struct Margins {
  int64_t before, after;
};

// Reads the paddings of height and width, and checks them against the image.
absl::StatusOr<std::vector<Margins>> ReadMargins(PrepareContext* context, int input, const Shape& image, int64_t edge) {
  if (context->input_shape(input) != Shape({4, 2})) {
    return absl::InvalidArgumentError(
        absl::StrCat("'paddings' has the shape ", context->input_shape(input).ToString(), ", expected [4,2]"));
  }
  const Tensor* value = context->input_value(input);
  if (value == nullptr) return context->NeedsValueOf(input);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerValues(*value));
  std::vector<Margins> margins;
  for (int d = 0; d < 4; ++d) {
    const Margins margin = {values[2 * d], values[2 * d + 1]};
    const bool is_spatial = d == 1 || d == 2;
    const int64_t largest = is_spatial ? std::max<int64_t>(0, image.dim(d) - edge) : 0;
    if (margin.before < 0 || margin.after < 0 || margin.before > largest || margin.after > largest) {
      return absl::InvalidArgumentError(absl::StrCat("'paddings' is ", margin.before, " and ", margin.after,
                                                     " for dimension ", d, " of ", image.dim(d), ", expected 0 to ",
                                                     largest));
    }
    if (is_spatial) margins.push_back(margin);
  }
  return margins;
}

// Returns the taps of an axis with mirror padding.
std::vector<Tap> Mirror(const std::vector<Tap>& taps, Margins margin, int64_t edge) {
  std::vector<Tap> padded;
  padded.reserve(taps.size() + margin.before + margin.after);
  for (int64_t i = margin.before; i > 0; --i) padded.push_back(taps[i - 1 + edge]);
  padded.insert(padded.end(), taps.begin(), taps.end());
  const int64_t last = static_cast<int64_t>(taps.size()) - 1;
  for (int64_t i = 0; i < margin.after; ++i) padded.push_back(taps[last - edge - i]);
  return padded;
}

absl::Status PreparePadded(PrepareContext* context, bool resizes) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  const int paddings_input = resizes ? 2 : 1;
  auto state = std::make_unique<PaddedState>();
  state->interpolates = resizes;
  state->batch = input.dim(0);
  state->height = input.dim(1);
  state->width = input.dim(2);
  state->channels = input.dim(3);
  Shape image = input;
  bool align_corners = false;
  if (resizes) {
    PF_ASSIGN_OR_RETURN(align_corners, BoolAttr(node, "resize_align_corners"));
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 1));
    if (size.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("input 1 (size) has ", size.size(), " values, expected 2"));
    }
    image.set_dim(1, size[0]);
    image.set_dim(2, size[1]);
  }
  for (int64_t side : {input.dim(1), input.dim(2), image.dim(1), image.dim(2)}) {
    if (side < 1 || side > kLargestSide) {
      return absl::InvalidArgumentError(
          absl::StrCat("an image of ", side, " lines or columns, expected 1 to ", kLargestSide));
    }
  }
  PF_ASSIGN_OR_RETURN(const std::string mode, StringAttr(node, "mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") {
    return absl::InvalidArgumentError(absl::StrCat("mode is '", mode, "', expected 'REFLECT' or 'SYMMETRIC'"));
  }
  const int64_t edge = mode == "REFLECT" ? 1 : 0;  // REFLECT does not repeat the outermost pixel.
  PF_ASSIGN_OR_RETURN(const std::vector<Margins> margins, ReadMargins(context, paddings_input, image, edge));
  Shape padded = image;
  padded.set_dim(1, image.dim(1) + margins[0].before + margins[0].after);
  padded.set_dim(2, image.dim(2) + margins[1].before + margins[1].after);
  PF_ASSIGN_OR_RETURN(const int64_t elements, padded.CheckedNumElements());
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->image_part, parts.Add(elements, static_cast<int64_t>(SizeOf(context->input_type(0)))));
  PF_ASSIGN_OR_RETURN(state->convolution,
                      PrepareConvolutionOf(context, ImageLayout(), padded, paddings_input + 1, &parts));
  if (elements > 0) {
    state->y = Mirror(BilinearTaps(state->height, image.dim(1), align_corners, false), margins[0], edge);
    state->x = Mirror(BilinearTaps(state->width, image.dim(2), align_corners, false), margins[1], edge);
  }
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PreparePadConvolution(PrepareContext* context) { return PreparePadded(context, false); }
absl::Status PrepareResizeAndPadConvolution(PrepareContext* context) { return PreparePadded(context, true); }

template <typename T>
void ConvolvePadded(ComputeContext* context) {
  const auto& state = context->state<PaddedState>();
  const T* input = context->input<T>(0);
  T* image = reinterpret_cast<T*>(context->scratch() + state.image_part);
  const int64_t lines = static_cast<int64_t>(state.y.size());
  const int64_t channels = state.channels, line_elements = static_cast<int64_t>(state.x.size()) * channels;
  context->threads().ParallelFor(
      state.batch * lines, 1 + (8 << 10) / (line_elements + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Tap& y = state.y[i % lines];
          const T* first = input + i / lines * state.height * state.width * channels;
          const T* top = first + y.lower * state.width * channels;
          const T* bottom = first + y.upper * state.width * channels;
          T* out = image + i * line_elements;
          if (state.interpolates) {
            InterpolateLine(top, bottom, y.fraction, absl::MakeConstSpan(state.x), channels, out);
            continue;
          }
          for (const Tap& x : state.x) out = std::copy_n(top + x.lower * channels, channels, out);
        }
      });
  Convolve(context, state.convolution, static_cast<const T*>(image));
}

absl::Status ComputePadded(ComputeContext* context) {
  if (context->input_at(0).dtype == DType::kDouble) {
    ConvolvePadded<double>(context);
  } else {
    ConvolvePadded<float>(context);
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(FusedPadConv2D) {
  return Kernel("Conv2D of the input padded with its mirror image")
      .Types<float, double, Half, BFloat16>("T")
      .Prepare(PrepareWidened<PreparePadConvolution>)
      .Compute(ComputeWidened<ComputePadded>);
}

DEFINE_KERNEL(FusedResizeAndPadConv2D) {
  return Kernel("Conv2D of the input resized by bilinear interpolation, then padded with its mirror image")
      .Types<float, double, Half, BFloat16>("T")
      .Prepare(PrepareWidened<PrepareResizeAndPadConvolution>)
      .Compute(ComputeWidened<ComputePadded>);
}

}  // namespace permafrost

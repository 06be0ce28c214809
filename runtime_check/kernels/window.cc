// Reads and checks the attributes of sliding windows.
#include "runtime_check/kernels/window.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/window_steps.h"

namespace permafrost {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// Reads attr `key` (strides, dilations, ksize): 4 values, each in [1, 2^31), those of batch and channel 1.
absl::StatusOr<KernelSize> ReadPair(const Node& node, const ImageLayout& layout, const char* key) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntListAttr(node, key));
  return SpatialPair(values, layout, absl::StrCat("attr '", key, "'"));
}

absl::Status SetOutput(WindowAxis* axis, const std::string& padding, int64_t explicit_before, int64_t explicit_after) {
  int64_t extent = 0;  // Extent of the dilated kernel.
  if (axis->taps < 1 || __builtin_mul_overflow(axis->taps - 1, axis->dilation, &extent) || extent > kLargest ||
      axis->input > std::numeric_limits<int64_t>::max() / 4) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", axis->taps, " taps at a distance of ",
                                                   axis->dilation, " over ", axis->input, " pixels"));
  }
  ++extent;
  if (padding == "SAME") {
    axis->output = DivideUp(axis->input, axis->stride);
    const int64_t needed = axis->output == 0 ? 0 : (axis->output - 1) * axis->stride + extent;
    axis->pad_before = std::max<int64_t>(0, needed - axis->input) / 2;
    return absl::OkStatus();
  }
  if (padding == "VALID") explicit_before = explicit_after = 0;
  axis->pad_before = explicit_before;
  const int64_t room = axis->input + explicit_before + explicit_after - extent + axis->stride;
  if (room < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", extent, " pixels does not fit into ",
                                                   axis->input + explicit_before + explicit_after));
  }
  axis->output = room / axis->stride;
  return absl::OkStatus();
}

}  // namespace

Shape ImageLayout::ShapeOf(int64_t batch, int64_t height_size, int64_t width_size, int64_t channels) const {
  Shape shape{batch, 0, 0, 0};
  shape.set_dim(height, height_size);
  shape.set_dim(width, width_size);
  shape.set_dim(channel, channels);
  return shape;
}

absl::StatusOr<ImageLayout> ReadImageLayout(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
  ImageLayout layout;
  if (format == "NHWC") return layout;
  if (format == "NCHW") {
    layout.channel = 1;
    layout.height = 2;
    layout.width = 3;
    return layout;
  }
  return absl::InvalidArgumentError(absl::StrCat("attr 'data_format' is '", format, "', expected 'NHWC' or 'NCHW'"));
}

void WindowAxis::TapsInside(int64_t position, int64_t* begin, int64_t* end) const {
  const int64_t first = First(position);
  *begin = first >= 0 ? 0 : std::min(taps, DivideUp(-first, dilation));
  *end = first >= input ? *begin : std::max(*begin, std::min(taps, DivideUp(input - first, dilation)));
}

void WindowAxis::FullPositions(int64_t* begin, int64_t* end) const {
  *begin = std::min(output, DivideUp(pad_before, stride));
  const int64_t last_first = input - ((taps - 1) * dilation + 1);  // The largest value of First() that fits.
  *end = last_first < -pad_before ? *begin : std::max(*begin, std::min(output, (last_first + pad_before) / stride + 1));
}

absl::StatusOr<Window> ReadWindow(const Node& node, const ImageLayout& layout, KernelSize kernel, int64_t input_height,
                                  int64_t input_width) {
  PF_ASSIGN_OR_RETURN(const KernelSize strides, ReadPair(node, layout, "strides"));
  KernelSize dilations{1, 1};
  const AttrValue* dilations_attr = node.FindAttr("dilations");
  if (dilations_attr != nullptr) {
    PF_ASSIGN_OR_RETURN(dilations, ReadPair(node, layout, "dilations"));
  }
  return PadWindow(node, layout, {kernel, strides, dilations}, input_height, input_width);
}

absl::StatusOr<KernelSize> SpatialPair(absl::Span<const int64_t> values, const ImageLayout& layout,
                                       absl::string_view name) {
  if (values.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", values.size(), " values, expected 4"));
  }
  for (int64_t value : values) {
    if (value < 1 || value > kLargest) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has the value ", value, ", expected 1 to ", kLargest));
    }
  }
  if (values[0] != 1 || values[layout.channel] != 1) {
    return absl::UnimplementedError(absl::StrCat(name, " is not 1 for batch and channels, which no kernel supports"));
  }
  return KernelSize{values[layout.height], values[layout.width]};
}

absl::StatusOr<Window> PadWindow(const Node& node, const ImageLayout& layout, const WindowSteps& steps,
                                 int64_t input_height, int64_t input_width) {
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(node, "padding"));
  std::vector<int64_t> explicit_paddings(8, 0);
  if (padding == "EXPLICIT") {
    PF_ASSIGN_OR_RETURN(explicit_paddings, IntListAttr(node, "explicit_paddings"));
    if (explicit_paddings.size() != 8) {
      return absl::InvalidArgumentError(
          absl::StrCat("attr 'explicit_paddings' has ", explicit_paddings.size(), " values, expected 8"));
    }
    for (int i = 0; i < 8; ++i) {
      const bool is_spatial = i / 2 == layout.height || i / 2 == layout.width;
      if (explicit_paddings[i] < 0 || explicit_paddings[i] > (is_spatial ? kLargest : 0)) {
        return absl::InvalidArgumentError(absl::StrCat("attr 'explicit_paddings' has the value ", explicit_paddings[i],
                                                       " in place ", i, ", expected ",
                                                       is_spatial ? absl::StrCat("0 to ", kLargest) : "0"));
      }
    }
  } else if (padding != "SAME" && padding != "VALID") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'padding' is '", padding, "', expected 'SAME', 'VALID' or 'EXPLICIT'"));
  }
  Window window;
  window.y = {input_height, steps.kernel.y, steps.strides.y, steps.dilations.y, 0, 0};
  window.x = {input_width, steps.kernel.x, steps.strides.x, steps.dilations.x, 0, 0};
  PF_RETURN_IF_ERROR(Annotate(
      SetOutput(&window.y, padding, explicit_paddings[2 * layout.height], explicit_paddings[2 * layout.height + 1]),
      "height"));
  PF_RETURN_IF_ERROR(Annotate(
      SetOutput(&window.x, padding, explicit_paddings[2 * layout.width], explicit_paddings[2 * layout.width + 1]),
      "width"));
  return window;
}

absl::StatusOr<KernelSize> ReadKernelSize(const Node& node, const ImageLayout& layout) {
  return ReadPair(node, layout, "ksize");
}

}  // namespace permafrost

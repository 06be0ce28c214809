// Translates convolutions, pooling and matrix products.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/xnnpack/translate.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace xnnpack {
namespace {

absl::Status No(absl::string_view reason) { return absl::UnimplementedError(reason); }

// Returns the padding after the image. XNNPACK computes the size of the output from the padding, so this covers the
// part of the last window that lies past the end.
int64_t PadAfter(const WindowAxis& axis) {
  const int64_t reach = (axis.output - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
  return std::max<int64_t>(0, reach - axis.input - axis.pad_before);
}

void SetAxes(const Window& window, WindowGeometry* geometry) {
  geometry->kernel_height = static_cast<uint32_t>(window.y.taps);
  geometry->kernel_width = static_cast<uint32_t>(window.x.taps);
  geometry->stride_height = static_cast<uint32_t>(window.y.stride);
  geometry->stride_width = static_cast<uint32_t>(window.x.stride);
  geometry->dilation_height = static_cast<uint32_t>(window.y.dilation);
  geometry->dilation_width = static_cast<uint32_t>(window.x.dilation);
  geometry->pad_top = static_cast<uint32_t>(window.y.pad_before);
  geometry->pad_left = static_cast<uint32_t>(window.x.pad_before);
  geometry->pad_bottom = static_cast<uint32_t>(PadAfter(window.y));
  geometry->pad_right = static_cast<uint32_t>(PadAfter(window.x));
}

absl::StatusOr<ImageLayout> Layout(const NodeView& view) {
  PF_ASSIGN_OR_RETURN(const ImageLayout layout, ReadImageLayout(view.node()));
  if (layout.is_nchw()) return No("its data_format is not NHWC");
  return layout;
}

}  // namespace

absl::StatusOr<Operation> TranslateConvolution(const NodeView& view) {
  PF_ASSIGN_OR_RETURN(const ImageLayout layout, Layout(view));
  Operation operation;
  operation.kind = OperationKind::kConvolution;
  PF_ASSIGN_OR_RETURN(operation.filter, view.Weights(1, "its filter"));
  const Shape& filter = view.input_shape(1);
  const Shape& input = view.input_shape(0);
  PF_ASSIGN_OR_RETURN(const Window window,
                      ReadWindow(view.node(), layout, {filter.dim(0), filter.dim(1)}, input.dim(1), input.dim(2)));
  WindowGeometry& geometry = operation.window;
  SetImages(input, view.output_shape(0), &geometry);
  SetAxes(window, &geometry);
  geometry.is_depthwise = view.node().op() == ops::kDepthwiseConv2dNative;
  geometry.groups = static_cast<uint32_t>(geometry.is_depthwise ? input.dim(3) : input.dim(3) / filter.dim(2));
  return operation;
}

absl::StatusOr<Operation> TranslateTransposedConvolution(const NodeView& view) {
  PF_ASSIGN_OR_RETURN(const ImageLayout layout, Layout(view));
  Operation operation;
  operation.kind = OperationKind::kTransposedConvolution;
  operation.inputs = {view.input(2)};
  PF_ASSIGN_OR_RETURN(operation.filter, view.Weights(1, "its filter"));
  const Shape& filter = view.input_shape(1);
  const Shape& output = view.output_shape(0);
  const Shape& input = view.input_shape(2);
  // Reads the window of the convolution whose transpose this node computes.
  PF_ASSIGN_OR_RETURN(const Window window,
                      ReadWindow(view.node(), layout, {filter.dim(0), filter.dim(1)}, output.dim(1), output.dim(2)));
  if (filter.dim(2) != output.dim(3) || filter.dim(3) != input.dim(3)) return No("it has groups");
  WindowGeometry& geometry = operation.window;
  SetImages(input, output, &geometry);
  SetAxes(window, &geometry);
  const auto adjustment = [](const WindowAxis& axis) {
    const int64_t reach = (axis.output - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
    return std::max<int64_t>(0, axis.input + axis.pad_before - reach);
  };
  // Explicit padding can cut off more of the output after the last window than the library can omit.
  if (adjustment(window.y) >= window.y.stride || adjustment(window.x) >= window.x.stride) {
    return No("its output extends a stride or more beyond its last window");
  }
  geometry.adjustment_height = static_cast<uint32_t>(adjustment(window.y));
  geometry.adjustment_width = static_cast<uint32_t>(adjustment(window.x));
  return operation;
}

absl::StatusOr<Operation> TranslateMatMul(const NodeView& view) {
  const bool is_batched = view.node().op() != ops::kMatMul;
  PF_ASSIGN_OR_RETURN(const bool transposes_input, BoolAttr(view.node(), is_batched ? "adj_x" : "transpose_a"));
  if (transposes_input) return No("it transposes its first operand");
  Operation operation;
  operation.kind = OperationKind::kMatMul;
  PF_ASSIGN_OR_RETURN(operation.filter, view.Weights(1, "its second operand"));
  PF_ASSIGN_OR_RETURN(operation.is_filter_transposed, BoolAttr(view.node(), is_batched ? "adj_y" : "transpose_b"));
  if (view.input_shape(1).rank() != 2) return No("its second operand has a batch");
  const Shape& shape = view.input_shape(0);
  operation.rows = Product(shape, 0, shape.rank() - 1);
  operation.channels = Product(shape, shape.rank() - 1, shape.rank());
  operation.out_channels = static_cast<size_t>(view.input_shape(1).dim(operation.is_filter_transposed ? 0 : 1));
  return operation;
}

absl::StatusOr<Operation> TranslatePool(const NodeView& view) {
  PF_ASSIGN_OR_RETURN(const ImageLayout layout, Layout(view));
  Operation operation;
  operation.kind = view.node().op() == ops::kMaxPool ? OperationKind::kMaxPool : OperationKind::kAveragePool;
  PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(view.node(), layout));
  if (kernel.y == 1 && kernel.x == 1) return No("its window is one pixel");
  const Shape& input = view.input_shape(0);
  PF_ASSIGN_OR_RETURN(const Window window, ReadWindow(view.node(), layout, kernel, input.dim(1), input.dim(2)));
  for (const WindowAxis& axis : {window.y, window.x}) {
    if (axis.pad_before >= axis.taps || PadAfter(axis) >= axis.taps)
      return No("a window lies completely in the padding");
  }
  SetImages(input, view.output_shape(0), &operation.window);
  SetAxes(window, &operation.window);
  return operation;
}

}  // namespace xnnpack
}  // namespace permafrost

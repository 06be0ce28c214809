// Selects kernels for convolutions and matrix products, and packs their weights.
#include "runtime_check/delegates/opencl/weights.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace opencl {
namespace {

using onednn::NodeKind;
using onednn::ParsedNode;
using onednn::WindowGeometry;

int64_t Blocks(int64_t channels) { return (channels + 3) / 4; }

// True for windows of one pixel that reads the pixel at the same position.
bool IsPointwise(const WindowGeometry& window) {
  const auto is_point = [](const WindowAxis& axis) {
    return axis.taps == 1 && axis.stride == 1 && axis.pad_before == 0 && axis.output == axis.input;
  };
  return window.groups == 1 && is_point(window.y) && is_point(window.x);
}

WeightedKernel Matrix(int64_t rows, int64_t depth, int64_t columns) {
  WeightedKernel kernel;
  kernel.file = "matrix.cl";
  kernel.name = "matrix";
  kernel.description = "matrix product";
  kernel.items = Blocks(rows) * Blocks(columns);
  kernel.table.Int(rows).Int(depth).Int(columns).Int(Blocks(columns));
  kernel.depth = depth;
  kernel.group_channels = columns;
  return kernel;
}

}  // namespace

WeightedKernel KernelOf(const ParsedNode& node, int64_t rows) {
  if (node.kind == NodeKind::kMatMul) return Matrix(rows, node.depth, node.columns);
  const WindowGeometry& window = node.window;
  const WindowAxis &y = window.y, &x = window.x;
  const int64_t inputs = window.input_channels, outputs = window.output_channels;
  WeightedKernel kernel;
  Table& table = kernel.table;
  if (node.kind == NodeKind::kTransposedConvolution) {
    // The window is that of the convolution from the result to the input.
    kernel.file = "transposed_convolution.cl";
    kernel.name = "transposed_convolution";
    kernel.description = absl::StrCat("transposed convolution ", y.taps, "x", x.taps);
    kernel.items = rows * Blocks(outputs);
    table.Int(y.output).Int(x.output).Int(inputs).Int(y.input).Int(x.input).Int(outputs);
    table.Int(y.taps).Int(x.taps).Int(y.stride).Int(x.stride).Int(y.dilation).Int(x.dilation);
    table.Int(y.pad_before).Int(x.pad_before).Int(Blocks(outputs));
    kernel.depth = y.taps * x.taps * inputs;
    kernel.group_channels = outputs;
    return kernel;
  }
  if (IsPointwise(window)) {
    kernel = Matrix(rows, inputs, outputs);
    kernel.description = "convolution 1x1";
    return kernel;
  }
  if (window.groups > 1 && window.groups == inputs && window.groups == outputs) {
    kernel.file = "depthwise.cl";
    kernel.name = "depthwise";
    kernel.description = absl::StrCat("depthwise convolution ", y.taps, "x", x.taps);
    kernel.items = rows * Blocks(outputs);
    table.Int(y.input).Int(x.input).Int(inputs).Int(y.output).Int(x.output);
    table.Int(y.taps).Int(x.taps).Int(y.stride).Int(x.stride).Int(y.dilation).Int(x.dilation);
    table.Int(y.pad_before).Int(x.pad_before);
    kernel.depth = y.taps * x.taps;
    kernel.group_channels = outputs;
    return kernel;
  }
  kernel.file = "convolution.cl";
  kernel.name = "convolution";
  kernel.description = absl::StrCat(window.groups > 1 ? "grouped " : "", "convolution ", y.taps, "x", x.taps);
  kernel.groups = window.groups;
  kernel.group_channels = outputs / window.groups;
  const int64_t group_inputs = inputs / window.groups;
  const int64_t blocks = window.groups * Blocks(kernel.group_channels);
  kernel.items = window.batch * y.output * Blocks(x.output) * blocks;
  kernel.depth = y.taps * x.taps * group_inputs;
  table.Int(y.input).Int(x.input).Int(inputs).Int(y.output).Int(x.output).Int(outputs);
  table.Int(y.taps).Int(x.taps).Int(y.stride).Int(x.stride).Int(y.dilation).Int(x.dilation);
  table.Int(y.pad_before).Int(x.pad_before).Int(group_inputs).Int(kernel.group_channels);
  table.Int(Blocks(kernel.group_channels)).Int(blocks);
  return kernel;
}

int64_t PackWeights(const ParsedNode& node, const WeightedKernel& kernel, const Tensor& weights, Constants* constants) {
  const std::string purpose = absl::StrCat(kernel.name, " ", kernel.depth, " ", kernel.groups, " ",
                                           kernel.group_channels, " ", node.transpose_b);
  int64_t& position = constants->Shared(weights.bytes(), purpose);
  if (position != 0) return position;
  const std::vector<float> given = onednn::FloatsOf(weights);
  const int64_t channels = kernel.groups * kernel.group_channels;
  const int64_t padded = Blocks(kernel.group_channels) * 4;
  const bool is_transposed = node.kind == NodeKind::kTransposedConvolution;
  const int64_t inputs = node.window.input_channels;
  std::vector<float> packed(static_cast<size_t>(kernel.depth * kernel.groups * padded), 0.0f);
  for (int64_t d = 0; d < kernel.depth; ++d) {
    for (int64_t c = 0; c < channels; ++c) {
      // Given as [depth, channels], [channels, depth], or, for each tap, [channels, inputs].
      const int64_t from = is_transposed      ? (d / inputs * channels + c) * inputs + d % inputs
                           : node.transpose_b ? c * kernel.depth + d
                                              : d * channels + c;
      const int64_t group = c / kernel.group_channels;
      packed[static_cast<size_t>((d * kernel.groups + group) * padded + c % kernel.group_channels)] =
          given[static_cast<size_t>(from)];
    }
  }
  position = constants->AddFloats(packed);
  return position;
}

}  // namespace opencl
}  // namespace permafrost

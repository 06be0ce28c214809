// What a node becomes: an operation that XNNPACK, or a loop of ours, computes. Several may be fused into one.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {
namespace xnnpack {

enum class OperationKind {
  kAlias,  // The same elements under another shape.
  kConvolution,
  kTransposedConvolution,
  kMatMul,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kClamp,
  kAbs,
  kNegate,
  kSquare,
  kFloor,
  kCeiling,
  kRound,
  kElu,
  kLeakyRelu,
  kPRelu,
  kSigmoid,
  kTanh,
  kSoftmax,
  kMaxPool,
  kAveragePool,
  kMean,
  kPad,
  kResize,
  kDepthToSpace,
  kCopy,
};

// "convolution", "add": as --explain and profiles call it.
const char* NameOf(OperationKind kind);

// Images are NHWC. Counts are in pixels and channels.
struct WindowGeometry {
  size_t batch = 1, input_height = 1, input_width = 1, input_channels = 1;
  size_t output_height = 1, output_width = 1, output_channels = 1;
  uint32_t kernel_height = 1, kernel_width = 1;
  uint32_t stride_height = 1, stride_width = 1;
  uint32_t dilation_height = 1, dilation_width = 1;
  uint32_t pad_top = 0, pad_right = 0, pad_bottom = 0, pad_left = 0;
  uint32_t groups = 1;
  uint32_t adjustment_height = 0, adjustment_width = 0;  // Of transposed convolutions.
  bool is_depthwise = false;                             // The filter is [height, width, channels, multiplier].
};

// Copies a block of up to kMostBlockDims dimensions; the elements of the last lie side by side. Counts are in floats.
inline constexpr int kMostBlockDims = 6;
struct BlockCopy {
  int input = 0, output = 0;  // Numbers of tensors.
  size_t input_offset = 0, output_offset = 0;
  size_t sizes[kMostBlockDims] = {1, 1, 1, 1, 1, 1};
  size_t input_strides[kMostBlockDims] = {};
  size_t output_strides[kMostBlockDims] = {};
};

struct Operation {
  OperationKind kind = OperationKind::kAlias;
  std::vector<const Node*> nodes;  // What it computes, in order; more than one after fusion.
  // Numbers of the partition's tensors. Inputs may be constants; parameters are not among them.
  std::vector<int> inputs, outputs;
  std::vector<std::vector<size_t>> input_shapes;
  // What is left of the result: that of Relu, Relu6 and the like.
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
  float alpha = 0;          // kElu, kLeakyRelu; what kPad pads with.
  size_t rows = 1;          // kMatMul, kSoftmax, kPRelu, kMean, and kinds that go element by element.
  size_t width = 1;         // kMean: rows that become one.
  size_t channels = 1;      // Of the input.
  size_t out_channels = 1;  // kMatMul.
  WindowGeometry window;    // Convolutions, pools, kResize, kDepthToSpace.
  // Weights as TensorFlow has them, and what is added to each output channel.
  std::optional<Tensor> filter;
  bool is_filter_transposed = false;              // kMatMul: [out_channels, channels].
  std::vector<float> bias;                        // Empty: none.
  std::vector<float> slope;                       // kPRelu, by channel.
  std::vector<size_t> pad_before, pad_after;      // kPad.
  uint32_t block_size = 1;                        // kDepthToSpace.
  bool align_corners = false, is_legacy = false;  // kResize.
  std::vector<BlockCopy> copies;                  // kCopy.

  bool has_clamp() const {
    return min != -std::numeric_limits<float>::infinity() || max != std::numeric_limits<float>::infinity();
  }
  // Multiplications, roughly; for a pool additions or comparisons.
  int64_t cost() const;
  // True when XNNPACK's code gives a number where NaN goes in.
  bool loses_nan() const;
  // True when XNNPACK computes it, which may read a few bytes beyond what it is given.
  bool is_library() const;
};

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATION_H_

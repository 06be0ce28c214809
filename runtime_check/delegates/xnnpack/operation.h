// An operation that XNNPACK or one of the delegate's own loops computes. It stands for one node, or for several fused
// ones.
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
  kBias,  // Adds one constant per channel, in place.
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

// Returns the name in --explain and profiles, such as "convolution" or "add".
const char* NameOf(OperationKind kind);

// The geometry of a window over images in NHWC. Counts are in pixels and channels.
struct WindowGeometry {
  size_t batch = 1, input_height = 1, input_width = 1, input_channels = 1;
  size_t output_height = 1, output_width = 1, output_channels = 1;
  uint32_t kernel_height = 1, kernel_width = 1;
  uint32_t stride_height = 1, stride_width = 1;
  uint32_t dilation_height = 1, dilation_width = 1;
  uint32_t pad_top = 0, pad_right = 0, pad_bottom = 0, pad_left = 0;
  uint32_t groups = 1;
  uint32_t adjustment_height = 0, adjustment_width = 0;  // Only for transposed convolutions.
  bool is_depthwise = false;                             // The filter is [height, width, channels, multiplier].
};

// A copy of a block of up to kMostBlockDims dimensions. The elements of the last dimension are contiguous. Counts are
// in floats.
inline constexpr int kMostBlockDims = 6;
struct BlockCopy {
  int input = 0, output = 0;  // Tensor numbers.
  size_t input_offset = 0, output_offset = 0;
  size_t sizes[kMostBlockDims] = {1, 1, 1, 1, 1, 1};
  size_t input_strides[kMostBlockDims] = {};
  size_t output_strides[kMostBlockDims] = {};
};

struct Operation {
  OperationKind kind = OperationKind::kAlias;
  std::vector<const Node*> nodes;  // The nodes that it computes, in order; several after fusion.
  // Tensor numbers of the partition. Inputs may be constants; parameters are not included.
  std::vector<int> inputs, outputs;
  std::vector<std::vector<size_t>> input_shapes;
  // The range to which the result is clamped, as by Relu and Relu6.
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
  float alpha = 0;          // kElu, kLeakyRelu; padding value of kPad.
  size_t rows = 1;          // kMatMul, kBias, kSoftmax, kPRelu, kMean, and elementwise kinds.
  size_t width = 1;         // kMean: the number of rows that are averaged into one.
  size_t channels = 1;      // Channels of the input.
  size_t out_channels = 1;  // kMatMul.
  WindowGeometry window;    // Convolutions, pools, kResize, kDepthToSpace.
  // The weights in TensorFlow's layout, and the bias of each output channel.
  std::optional<Tensor> filter;
  bool is_filter_transposed = false;              // kMatMul: [out_channels, channels].
  std::vector<float> bias;                        // kBias and those with weights; empty: no bias.
  std::vector<float> slope;                       // kPRelu: one value per channel.
  std::vector<size_t> pad_before, pad_after;      // kPad.
  uint32_t block_size = 1;                        // kDepthToSpace.
  bool align_corners = false, is_legacy = false;  // kResize.
  std::vector<BlockCopy> copies;                  // kCopy.

  bool has_clamp() const {
    return min != -std::numeric_limits<float>::infinity() || max != std::numeric_limits<float>::infinity();
  }
  // Returns the approximate number of multiplications; for a pool the number of additions or comparisons.
  int64_t cost() const;
  // Returns true if the result is written over the input, which nothing else reads.
  bool is_in_place() const { return kind == OperationKind::kBias; }
  // Returns true if XNNPACK's kernel converts NaN in the input to a number.
  bool loses_nan() const;
  // Returns true if XNNPACK computes the operation. It may then read a few bytes past the end of its inputs.
  bool is_library() const;
};

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_OPERATION_H_

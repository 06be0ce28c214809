// Classification of nodes: the kind and parameters of each node that the delegate supports, before fusion.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NODE_KINDS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NODE_KINDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace onednn {

enum class NodeKind {
  kAlias,        // Identity, Reshape: the same elements under another shape.
  kElementwise,  // ParsedNode::loop
  kConvolution,  // Includes depthwise and fused ones.
  kTransposedConvolution,
  kMatMul,
  kPool,
  kMean,  // Mean over height and width.
  kConcat,
  kPad,
  kResize,
  kSoftmax,
  kBatchNorm,
};

// How the second operand of an elementwise node is broadcast to the shape of the first.
enum class Meeting {
  kSame,        // Same shape, element by element.
  kPerChannel,  // One value for each element of the last dimension.
  kScalar,
  kPerImage,  // [N, 1, 1, C]: one value for each channel of each image.
  kPerRow,    // [..., 1]: one value for all channels of a row.
};

// A window that moves over an image, NHWC.
struct WindowGeometry {
  int64_t batch = 0, input_height = 0, input_width = 0, input_channels = 0, output_channels = 0;
  WindowAxis y, x;
  int64_t groups = 1;
};

enum class PostActivation { kNone, kRelu, kRelu6, kElu, kLeakyRelu, kTanh, kSigmoid };

struct ParsedNode {
  NodeKind kind = NodeKind::kAlias;
  // kElementwise. `left` and `right` are inputs; one operand if right is -1.
  LoopOp loop = LoopOp::kCopy;
  float alpha = 0, beta = 0;
  int left = 0, right = -1;
  Meeting meeting = Meeting::kSame;
  // kConvolution, kTransposedConvolution, kPool.
  WindowGeometry window;
  bool is_average = false;
  // _Fused ops: the bias is input 2.
  bool has_bias = false;
  PostActivation activation = PostActivation::kNone;
  float activation_alpha = 0;
  // kMatMul: C[rows, columns] = A[rows, depth] B[depth, columns].
  int64_t rows = 0, depth = 0, columns = 0;
  bool transpose_b = false;
  // kPad: pixels before and after, in height and width.
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  // kResize.
  bool is_bilinear = false, align_corners = false, half_pixel_centers = false;
  // kConcat: the inputs and the axis.
  int num_values = 0, first_value = 0, axis = 0;
  // kBatchNorm: y = x * factor + offset for each channel.
  std::vector<float> factor, offset;
};

// Returns the number of pixels past the end of the image that the last position of the window reaches.
int64_t PadAfter(const WindowAxis& axis);

// Parses a node. Returns Unimplemented, with the reason, for a node that the delegate does not support.
absl::StatusOr<ParsedNode> ParseNode(const Partition& partition, const DelegateNode& node);

// Returns the elements of a float constant.
std::vector<float> FloatsOf(const Tensor& tensor);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NODE_KINDS_H_

// Classification of nodes: the kind and parameters of each node that the delegate supports, before fusion.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NODE_KINDS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NODE_KINDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/contraction.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/strided.h"
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
  kReduce,  // Mean or sum over one or two groups of neighbouring dimensions.
  kConcat,  // Includes Pack.
  kPad,
  kResize,
  kSoftmax,
  kBatchNorm,
  kBroadcast,  // An elementwise node of two operands that are broadcast in a way that no Meeting describes.
  kSelect,
  kView,  // Transpose, Slice, Split and the like: elements of the input in another order, for each output.
  kGather,
  kProduct,    // Matrix products of two computed operands.
  kNormalize,  // Layer and RMS normalisation, of several nodes.
  kAttention,  // softmax(scale * q k + mask) v, of several nodes.
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
  // True if the node has the images [N, C, H, W]. AssignLayouts makes it read and write [N, H, W, C], which the other
  // fields describe.
  bool is_channels_first = false;
  // kElementwise. `left` and `right` are inputs; one operand if right is -1.
  LoopOp loop = LoopOp::kCopy;
  float alpha = 0, beta = 0;
  int left = 0, right = -1;
  Meeting meeting = Meeting::kSame;
  int64_t channels = 0;  // Elements of a kPerChannel operand that has several dimensions; 0 if it has one.
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
  // Inputs of a weighted node. `data` is also that of other nodes with one data input.
  int data = 0, weights = 1;
  // kPad: pixels before and after, in height and width.
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  // kResize.
  bool is_bilinear = false, align_corners = false, half_pixel_centers = false;
  // kReduce, and kGather, whose input is [outer, reduced, inner]. A reduction may have a second reduced dimension.
  int64_t outer = 1, reduced = 1, inner = 1, reduced_last = 1;
  bool is_mean = false;
  // kView: one for each output.
  std::vector<StridedView> views;
  // kSelect: the inputs are the condition, the value where it is true, and the other value. kBroadcast: the two
  // operands. The strides with which each is broadcast to the result.
  std::vector<std::vector<int64_t>> strides;
  // kProduct.
  Contraction contraction;
  Product product;
  // kAttention: `product` makes the scores, `second` reads the probabilities; both have the same batches. The inputs
  // are queries, keys, values, the mask that is added and the condition that selects scores. `strides` has the steps of
  // mask and condition for each batch, rows and columns.
  Product second;
  float scale = 1;
  bool has_mask = false, has_condition = false;
  bool keeps_true = true;  // Scores are replaced by `fill` where the condition is false, or where it is true.
  float fill = 0;
  // kNormalize, with `factor` and `offset`.
  float epsilon = 0;
  bool is_centred = true;
  // kConcat: the inputs and the axis.
  int num_values = 0, first_value = 0, axis = 0;
  std::string near_miss;  // Names a pattern that the node almost is part of, and the difference; for --explain.
  // kBatchNorm, kNormalize: y = x * factor + offset for each channel.
  std::vector<float> factor, offset;
};

// Returns the number of pixels past the end of the image that the last position of the window reaches.
int64_t PadAfter(const WindowAxis& axis);

// Parses a node. Returns Unimplemented, with the reason, for a node that the delegate does not support.
absl::StatusOr<ParsedNode> ParseNode(const Partition& partition, const DelegateNode& node);

// Returns the channels of a weighted node's result: the last dimension, or the columns of a matrix product.
int64_t OutputChannels(const ParsedNode& parsed);

// Returns the elements of a float constant.
std::vector<float> FloatsOf(const Tensor& tensor);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NODE_KINDS_H_

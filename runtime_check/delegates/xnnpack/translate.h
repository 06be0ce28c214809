// Translation of nodes to operations. It decides which nodes the delegate supports.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_TRANSLATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_TRANSLATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

// A node and its input and output tensors.
class NodeView {
 public:
  NodeView(const Partition& partition, const DelegateNode& node) : partition_(partition), node_(node) {}

  const Node& node() const { return *node_.node; }
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  int input(int i) const { return node_.inputs[i]; }
  int output(int i) const { return node_.outputs[i]; }
  const DelegateTensor& input_tensor(int i) const { return partition_.tensors[node_.inputs[i]]; }
  const Shape& input_shape(int i) const { return input_tensor(i).shape; }
  const Shape& output_shape(int i) const { return partition_.tensors[node_.outputs[i]].shape; }
  bool is_constant(int i) const { return input_tensor(i).constant.has_value(); }

  // Returns the integers of an input; Unimplemented, with `what` in the message, if they are not known.
  absl::StatusOr<std::vector<int64_t>> Integers(int i, absl::string_view what) const;
  // Returns one float of an input, which is never NaN; Unimplemented, with `what` in the message, if it is not known.
  absl::StatusOr<float> OneFloat(int i, absl::string_view what, bool may_be_infinite = false) const;
  // Returns input i; Unimplemented unless it is a constant of finite floats.
  absl::StatusOr<Tensor> Weights(int i, absl::string_view what) const;

 private:
  const Partition& partition_;
  const DelegateNode& node_;
};

std::vector<size_t> Sizes(const Shape& shape);
std::vector<float> Floats(const Tensor& tensor);
// Sets the sizes of the input and the output image, [batch, height, width, channels].
void SetImages(const Shape& input, const Shape& output, WindowGeometry* window);
// Returns the product of dimensions [begin, end).
size_t Product(const Shape& shape, int begin, int end);

// Translates a node. Returns Unimplemented, with the reason, if XNNPACK lacks the operation or its result differs from
// TensorFlow's.
absl::StatusOr<Operation> Translate(const Partition& partition, const DelegateNode& node);

// Translate the nodes of one family each. The results omit inputs, outputs and nodes where these are the first ones of
// the node.
absl::StatusOr<Operation> TranslateConvolution(const NodeView& view);
absl::StatusOr<Operation> TranslateTransposedConvolution(const NodeView& view);
absl::StatusOr<Operation> TranslateMatMul(const NodeView& view);
absl::StatusOr<Operation> TranslatePool(const NodeView& view);
absl::StatusOr<Operation> TranslateJoin(const NodeView& view);   // ConcatV2, Pack
absl::StatusOr<Operation> TranslateSplit(const NodeView& view);  // Split, SplitV, Unpack
absl::StatusOr<Operation> TranslateSlice(const NodeView& view);  // Slice, StridedSlice

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_TRANSLATE_H_

// Between Tensor and the wire form of TensorProto, in every encoding that TensorFlow writes.
#ifndef PERMAFROST_GRAPH_WIRE_FORMAT_TENSOR_PROTO_H_
#define PERMAFROST_GRAPH_WIRE_FORMAT_TENSOR_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

// What can be known of an encoded tensor without touching its elements.
struct TensorHeader {
  DType dtype = DType::kInvalid;
  Shape shape;
};

// DataLoss for malformed bytes, InvalidArgument for a shape that no tensor can have.
absl::StatusOr<TensorHeader> ParseTensorHeader(absl::string_view encoded);

// Whether ParseTensorProto would succeed, as far as can be told without touching elements: type, shape, and the size of
// tensor_content. Opaque types (resource, variant) are fine. *header is set on success.
absl::Status CheckTensorProto(absl::string_view encoded, TensorHeader* header);

// Decodes a TensorProto. With tensor_content the result is a view of `encoded`, which `owner` keeps alive. Typed lists
// are expanded (the last value repeats; an empty list stands for zeros), at most kMaxExpandedBytes of them.
// InvalidArgument: no such type, shape not fully known, size and shape disagree, opaque types (resource, variant).
// ResourceExhausted: the expansion limit, or no memory.
absl::StatusOr<Tensor> ParseTensorProto(absl::string_view encoded, const Owner& owner);

// Decodes the values of a TensorProto that leaves its type and shape to others, as checkpoints do. The list must be
// complete: DataLoss when it holds fewer values than `shape`, which is fully known, has elements. InvalidArgument and
// ResourceExhausted as above.
absl::StatusOr<Tensor> ParseTensorValues(absl::string_view encoded, DType dtype, const Shape& shape);

// A few bytes may ask for any amount of repeated values; more than this is refused (1 GiB).
inline constexpr int64_t kMaxExpandedBytes = int64_t{1} << 30;

// Bytes of `tensor` as a TensorProto, and the TensorProto itself: dtype, tensor_shape and tensor_content, or string_val
// for strings. The elements go to the sink as the view that they are.
size_t TensorProtoSize(const Tensor& tensor);
absl::Status WriteTensorProto(const Tensor& tensor, ByteSink* sink);

// TensorShapeProto. Parsing gives DataLoss for malformed bytes and InvalidArgument for a dimension below -1.
absl::StatusOr<Shape> ParseShapeProto(absl::string_view encoded);
std::string EncodeShapeProto(const Shape& shape);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_WIRE_FORMAT_TENSOR_PROTO_H_

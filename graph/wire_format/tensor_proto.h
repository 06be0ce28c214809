// Converts between Tensor and the wire format of TensorProto, in every encoding that TensorFlow writes.
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

// Properties of an encoded tensor that do not depend on its elements.
struct TensorHeader {
  DType dtype = DType::kInvalid;
  Shape shape;
};

// Reads the header. Returns DataLoss for malformed bytes, InvalidArgument for a shape that no tensor can have.
absl::StatusOr<TensorHeader> ParseTensorHeader(absl::string_view encoded);

// Checks whether ParseTensorProto would succeed, without reading elements: type, shape, and the size of tensor_content.
// Accepts opaque types (resource, variant). Sets *header on success.
absl::Status CheckTensorProto(absl::string_view encoded, TensorHeader* header);

// Decodes a TensorProto. With tensor_content the result is a view of `encoded`, which `owner` keeps alive. Typed lists
// are expanded (the last value is repeated; an empty list means zeros) to at most kMaxExpandedBytes. Returns
// InvalidArgument for an unknown type, a shape that is not fully known, a size that does not match the shape, and
// opaque types (resource, variant); ResourceExhausted if the expansion limit is exceeded or memory is insufficient.
absl::StatusOr<Tensor> ParseTensorProto(absl::string_view encoded, const Owner& owner);

// Decodes the values of a TensorProto without type and shape, as in checkpoints. `shape` must be fully known. Returns
// DataLoss if the list holds fewer values than `shape` has elements. Same InvalidArgument and ResourceExhausted as
// above.
absl::StatusOr<Tensor> ParseTensorValues(absl::string_view encoded, DType dtype, const Shape& shape);

// Limit on expanded lists (1 GiB), because a few bytes can encode any number of repeated values.
inline constexpr int64_t kMaxExpandedBytes = int64_t{1} << 30;

// Return the size of `tensor` as a TensorProto in bytes, and write it: dtype, tensor_shape, and tensor_content or, for
// strings, string_val. The elements are passed to the sink as a view.
size_t TensorProtoSize(const Tensor& tensor);
absl::Status WriteTensorProto(const Tensor& tensor, ByteSink* sink);

// Convert TensorShapeProto. ParseShapeProto returns DataLoss for malformed bytes and InvalidArgument for a dimension
// below -1.
absl::StatusOr<Shape> ParseShapeProto(absl::string_view encoded);
std::string EncodeShapeProto(const Shape& shape);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_WIRE_FORMAT_TENSOR_PROTO_H_

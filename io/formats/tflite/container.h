// The container of a TensorFlow Lite model: a verified FlatBuffer, and the values of its constants.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_CONTAINER_H_
#define PERMAFROST_IO_FORMATS_TFLITE_CONTAINER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "io/file_system.h"
#include "io/formats/tflite/schema_generated.h"

namespace permafrost {

// True if `head`, the first bytes of a file, has the identifier of the format.
bool HasTfliteIdentifier(absl::string_view head);

// Every index that the model holds is checked when it is opened: tensors, buffers, operator codes, subgraphs. Copies
// share the file.
class TfliteContainer {
 public:
  // DataLoss for a FlatBuffer that leaves its bounds; InvalidArgument for an index out of range, with its place.
  // Decoded constants (int4, sparse, strings) may take `max_decoded_bytes` together.
  static absl::StatusOr<TfliteContainer> Open(FileView file, uint64_t max_decoded_bytes);

  const tflite::Model& model() const { return *model_; }
  const tflite::SubGraph& subgraph(int i) const { return *model_->subgraphs()->Get(static_cast<uint32_t>(i)); }
  const tflite::Tensor& tensor(int subgraph, int i) const {
    return *this->subgraph(subgraph).tensors()->Get(static_cast<uint32_t>(i));
  }

  // The number of the operator: the larger of the two fields that may hold it.
  tflite::BuiltinOperator OperatorOf(const tflite::Operator& op) const;
  // The name of a custom operator; empty if it has none.
  absl::string_view CustomName(const tflite::Operator& op) const;
  // "CONV_2D", or "CUSTOM 'name'".
  std::string OperatorName(const tflite::Operator& op) const;

  // True if the tensor has a value in the file.
  bool IsConstant(const tflite::Tensor& tensor) const;
  // The value of a constant: a view of the file where the layout is the same, otherwise decoded. int4 and int2 become
  // int8, sparse tensors dense. DataLoss if the buffer has another size than type and shape ask for.
  absl::StatusOr<Tensor> Value(const tflite::Tensor& tensor);

 private:
  absl::Status CheckIndices() const;
  absl::Status CheckSubgraph(int index) const;
  absl::StatusOr<absl::string_view> Bytes(const tflite::Tensor& tensor) const;
  absl::Status TakeDecoded(uint64_t bytes);
  absl::StatusOr<Tensor> Strings(const Shape& shape, absl::string_view bytes);
  absl::StatusOr<Tensor> Unpacked(const Shape& shape, absl::string_view bytes, int bits, bool is_signed);
  absl::StatusOr<Tensor> Dense(const tflite::SparsityParameters& sparsity, DType dtype, const Shape& shape,
                               absl::string_view bytes);

  FileView file_;
  const tflite::Model* model_ = nullptr;
  uint64_t decoded_bytes_left_ = 0;
};

// The element type of values of this type in a graph; kInvalid for a type without one. INT4, INT2 and UINT4 count as
// INT8 and UINT8: see Value.
DType DTypeOfTflite(tflite::TensorType type);

// The stored shape. InvalidArgument for a negative dimension or more elements than fit.
absl::StatusOr<Shape> ShapeOfTflite(const tflite::Tensor& tensor);
// The same with the dimensions that a caller may choose unknown (`shape_signature`).
absl::StatusOr<Shape> OpenShapeOfTflite(const tflite::Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_CONTAINER_H_

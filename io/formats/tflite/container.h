// The container of a TensorFlow Lite model: a verified FlatBuffer and the values of its constants.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_CONTAINER_H_
#define PERMAFROST_IO_FORMATS_TFLITE_CONTAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// A model whose indices (tensors, buffers, operator codes, subgraphs) are all checked when it is opened. Copies share
// the file.
class TfliteContainer {
 public:
  // Opens a file. Decoded constants (int4, sparse, strings) may take at most `max_decoded_bytes` in total. Returns
  // DataLoss for a FlatBuffer that exceeds its bounds, InvalidArgument, with the place, for an index out of range.
  static absl::StatusOr<TfliteContainer> Open(FileView file, uint64_t max_decoded_bytes);

  const tflite::Model& model() const { return *model_; }
  const tflite::SubGraph& subgraph(int i) const { return *model_->subgraphs()->Get(static_cast<uint32_t>(i)); }
  const tflite::Tensor& tensor(int subgraph, int i) const {
    return *this->subgraph(subgraph).tensors()->Get(static_cast<uint32_t>(i));
  }

  // Returns the number of the operator: the larger of the two fields that may hold it.
  tflite::BuiltinOperator OperatorOf(const tflite::Operator& op) const;
  // Returns the name of a custom operator, or an empty string if it has none.
  absl::string_view CustomName(const tflite::Operator& op) const;
  // Returns "CONV_2D", or "CUSTOM 'name'".
  std::string OperatorName(const tflite::Operator& op) const;

  // True if the tensor has bytes in the file.
  bool HasData(const tflite::Tensor& tensor) const;
  // True if the tensor has a value in the file: data, or no elements and a buffer of its own.
  bool IsConstant(const tflite::Tensor& tensor) const;
  // Same, for an operand: false for an input of the subgraph and for a result of an operator, which may have an empty
  // buffer of their own.
  bool IsConstantOperand(int subgraph, int tensor) const;
  // Returns the value of a constant, as a view of the file if the layout is the same, otherwise decoded: int4 and int2
  // become int8, sparse tensors become dense. Returns DataLoss if the size of the buffer does not match type and shape.
  absl::StatusOr<Tensor> Value(const tflite::Tensor& tensor);
  // Returns the value of a constant as a view of its bytes: with type and shape of the tensor if it has the same
  // layout, otherwise as a vector of bytes.
  absl::StatusOr<Tensor> Stored(const tflite::Tensor& tensor) const;
  // Returns the content of a buffer, or DataLoss if it leaves the file. REQUIRES: there is a buffer `index`.
  absl::StatusOr<absl::string_view> BufferBytes(uint32_t index) const;
  // Returns bytes of the file, or DataLoss if it is shorter.
  absl::StatusOr<absl::string_view> BytesAt(uint64_t offset, uint64_t size) const;
  const FileView& file() const { return file_; }
  // Returns the initial value of a variable tensor: the number 0, for codes the zero point. Returns
  // ResourceExhausted if all states together are much larger than the file.
  absl::StatusOr<Tensor> InitialState(const tflite::Tensor& tensor);
  // Counts `bytes` of constants that the import makes, such as the positions of windows. Returns ResourceExhausted if
  // all together are much larger than the file.
  absl::Status TakeMade(uint64_t bytes);

 private:
  absl::Status CheckIndices();
  absl::Status CheckSubgraph(int index) const;
  absl::StatusOr<absl::string_view> Bytes(const tflite::Tensor& tensor) const { return BufferBytes(tensor.buffer()); }
  absl::Status TakeDecoded(uint64_t bytes);
  absl::StatusOr<Tensor> Strings(const Shape& shape, absl::string_view bytes);
  absl::StatusOr<Tensor> Unpacked(const Shape& shape, absl::string_view bytes, int bits, bool is_signed);
  absl::StatusOr<Tensor> Dense(const tflite::SparsityParameters& sparsity, DType dtype, const Shape& shape,
                               absl::string_view bytes);

  FileView file_;
  const tflite::Model* model_ = nullptr;
  // By subgraph and tensor: an input of the subgraph, or a result of an operator.
  std::shared_ptr<const std::vector<std::vector<bool>>> is_set_;
  uint64_t decoded_bytes_left_ = 0;
  uint64_t state_bytes_ = 0;
  uint64_t made_bytes_ = 0;
};

// Returns the element type in a graph; kInvalid if there is none. INT4, INT2 and UINT4 map to INT8 and UINT8 (see
// Value).
DType DTypeOfTflite(tflite::TensorType type);

// The smallest and the largest code of an integer type; of types wider than 32 bits, those that fit 32 bits.
struct CodeLimits {
  int64_t low, high;
};
CodeLimits LimitsOf(DType dtype);

// True if the bytes of a constant are not its elements one after the other: packed, sparse, strings or of unknown type.
bool HasOwnLayout(tflite::TensorType type, bool is_sparse);

// True for a tensor of codes: integers with a scale.
bool IsQuantized(const tflite::Tensor& tensor);

// Returns the stored shape. Returns InvalidArgument for a negative dimension or too many elements.
absl::StatusOr<Shape> ShapeOfTflite(const tflite::Tensor& tensor);
// Returns the shape in which the dimensions that callers may choose are unknown (`shape_signature`). Same errors.
absl::StatusOr<Shape> OpenShapeOfTflite(const tflite::Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_CONTAINER_H_

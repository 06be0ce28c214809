// Implements the verification of the FlatBuffer and the decoding of constants.
#include "io/formats/tflite/container.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// Maximum nesting of tables; the schema needs fewer than 10 levels.
constexpr uint32_t kMostDepth = 64;
// Minimum size of a table in bytes: its offset and that of its vtable. It bounds the number of tables in a file.
constexpr uint64_t kLeastTableBytes = 4;
constexpr uint32_t kVersion = 3;
constexpr int kMostRank = 254;

uint32_t Reads32(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

absl::StatusOr<Shape> ShapeFrom(const flatbuffers::Vector<int32_t>* dims, bool may_be_open) {
  if (dims == nullptr) return Shape();
  if (dims->size() > kMostRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shape has ", dims->size(), " dimensions, expected at most ", kMostRank));
  }
  std::vector<int64_t> sizes;
  sizes.reserve(dims->size());
  for (const int32_t dim : *dims) {
    if (dim < (may_be_open ? -1 : 0)) {
      return absl::InvalidArgumentError(absl::StrCat("the shape has the dimension ", dim, ", expected 0 or more"));
    }
    sizes.push_back(dim);
  }
  return Shape(sizes);
}

// Returns the integers of one index vector of a sparse dimension, of any width.
absl::StatusOr<std::vector<int64_t>> SparseIndices(tflite::SparseIndexVector type, const void* table) {
  std::vector<int64_t> values;
  const auto copy = [&values](const auto* vector) {
    if (vector == nullptr) return;
    values.reserve(vector->size());
    for (const auto value : *vector) values.push_back(static_cast<int64_t>(value));
  };
  if (table != nullptr) {
    switch (type) {
      case tflite::SparseIndexVector::Int32Vector:
        copy(static_cast<const tflite::Int32Vector*>(table)->values());
        return values;
      case tflite::SparseIndexVector::Uint16Vector:
        copy(static_cast<const tflite::Uint16Vector*>(table)->values());
        return values;
      case tflite::SparseIndexVector::Uint8Vector:
        copy(static_cast<const tflite::Uint8Vector*>(table)->values());
        return values;
      case tflite::SparseIndexVector::NONE:
        break;
    }
  }
  return absl::InvalidArgumentError("a sparse dimension has no index vector");
}

// Expands a sparse tensor. It has one level for each dimension of the traversal, with block dimensions last.
class Densifier {
 public:
  static absl::StatusOr<Densifier> Make(const tflite::SparsityParameters& sparsity, const Shape& shape) {
    Densifier result;
    const auto* order = sparsity.traversal_order();
    const auto* levels = sparsity.dim_metadata();
    const auto* blocks = sparsity.block_map();
    const size_t rank = static_cast<size_t>(shape.rank());
    const size_t num_blocks = blocks == nullptr ? 0 : blocks->size();
    if (order == nullptr || levels == nullptr || num_blocks > rank || order->size() != rank + num_blocks ||
        levels->size() != order->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sparsity: found a traversal of ", order == nullptr ? 0 : order->size(), " dimensions with ",
                       num_blocks, " blocks, expected one of the ", rank, " dimensions and each block"));
    }
    result.shape_ = shape;
    for (size_t i = 0; i < num_blocks; ++i) {
      if (blocks->Get(static_cast<uint32_t>(i)) < 0 ||
          static_cast<size_t>(blocks->Get(static_cast<uint32_t>(i))) >= rank) {
        return absl::InvalidArgumentError("sparsity: a block maps to no dimension");
      }
      result.block_map_.push_back(blocks->Get(static_cast<uint32_t>(i)));
    }
    std::vector<bool> is_seen(order->size(), false);
    for (uint32_t i = 0; i < order->size(); ++i) {
      const int32_t dim = order->Get(i);
      if (dim < 0 || static_cast<size_t>(dim) >= is_seen.size() || is_seen[static_cast<size_t>(dim)]) {
        return absl::InvalidArgumentError("sparsity: the traversal order is no permutation");
      }
      is_seen[static_cast<size_t>(dim)] = true;
      const tflite::DimensionMetadata* metadata = levels->Get(i);
      Level level;
      level.dim = dim;
      level.is_sparse = metadata->format() == tflite::DimensionType::SPARSE_CSR;
      if (level.is_sparse) {
        PF_ASSIGN_OR_RETURN(level.segments, SparseIndices(metadata->array_segments_type(), metadata->array_segments()));
        PF_ASSIGN_OR_RETURN(level.indices, SparseIndices(metadata->array_indices_type(), metadata->array_indices()));
      } else {
        level.size = metadata->dense_size();
        if (level.size < 0) return absl::InvalidArgumentError("sparsity: a dense dimension has a negative size");
      }
      result.levels_.push_back(std::move(level));
    }
    // The size of a block is that of its level, which must be dense. It scales the dimension that it divides.
    result.block_size_.assign(rank, 1);
    for (const Level& level : result.levels_) {
      if (static_cast<size_t>(level.dim) < rank) continue;
      if (level.is_sparse) return absl::InvalidArgumentError("sparsity: a block is sparse, expected a dense one");
      const size_t dim = static_cast<size_t>(result.block_map_[static_cast<size_t>(level.dim) - rank]);
      if (level.size < 1 || result.shape_.dim(static_cast<int>(dim)) % (result.block_size_[dim] * level.size) != 0) {
        return absl::InvalidArgumentError("sparsity: a block does not divide its dimension");
      }
      result.block_size_[dim] *= level.size;
    }
    for (const Level& level : result.levels_) {
      if (level.is_sparse || static_cast<size_t>(level.dim) >= rank) continue;
      const int64_t expected = shape.dim(level.dim) / result.block_size_[static_cast<size_t>(level.dim)];
      if (level.size != expected) {
        return absl::InvalidArgumentError(
            absl::StrCat("sparsity: dimension ", level.dim, " has ", level.size, " dense blocks, expected ", expected));
      }
    }
    return result;
  }

  // Copies the stored elements, of `size` bytes each, to their positions in `out`, which is zero-filled.
  absl::Status Run(absl::string_view kept, size_t size, char* out) {
    kept_ = kept;
    size_ = size;
    out_ = out;
    std::vector<int64_t> position(levels_.size(), 0);
    PF_RETURN_IF_ERROR(Visit(0, 0, &position));
    if (next_ * size_ != kept_.size()) {
      return absl::DataLossError(
          absl::StrCat("the sparse buffer has ", kept_.size(), " bytes, expected ", next_ * size_));
    }
    return absl::OkStatus();
  }

 private:
  struct Level {
    int dim = 0;
    bool is_sparse = false;
    int64_t size = 0;  // Of a dense level.
    std::vector<int64_t> segments, indices;
  };

  // Visits one level. `parent` is the index of the current path in the level above. The recursion depth is the length
  // of the traversal, at most twice kMostRank.
  absl::Status Visit(size_t depth, int64_t parent, std::vector<int64_t>* position) {
    if (depth == levels_.size()) return Place(*position);
    const Level& level = levels_[depth];
    if (!level.is_sparse) {
      for (int64_t i = 0; i < level.size; ++i) {
        (*position)[depth] = i;
        PF_RETURN_IF_ERROR(Visit(depth + 1, parent * level.size + i, position));
      }
      return absl::OkStatus();
    }
    if (parent < 0 || static_cast<size_t>(parent) + 1 >= level.segments.size()) {
      return absl::InvalidArgumentError("sparsity: a segment lies beyond its vector");
    }
    const int64_t begin = level.segments[static_cast<size_t>(parent)];
    const int64_t end = level.segments[static_cast<size_t>(parent) + 1];
    if (begin < 0 || end < begin || static_cast<size_t>(end) > level.indices.size()) {
      return absl::InvalidArgumentError("sparsity: a segment leaves its index vector");
    }
    for (int64_t i = begin; i < end; ++i) {
      (*position)[depth] = level.indices[static_cast<size_t>(i)];
      PF_RETURN_IF_ERROR(Visit(depth + 1, i, position));
    }
    return absl::OkStatus();
  }

  absl::Status Place(const std::vector<int64_t>& position) {
    const int rank = shape_.rank();
    std::vector<int64_t> at(static_cast<size_t>(rank), 0);
    for (size_t i = 0; i < levels_.size(); ++i) {
      if (levels_[i].dim < rank)
        at[static_cast<size_t>(levels_[i].dim)] += position[i] * block_size_[static_cast<size_t>(levels_[i].dim)];
    }
    for (size_t i = 0; i < levels_.size(); ++i) {
      if (levels_[i].dim >= rank)
        at[static_cast<size_t>(block_map_[static_cast<size_t>(levels_[i].dim - rank)])] += position[i];
    }
    int64_t offset = 0;
    for (int i = 0; i < rank; ++i) {
      const int64_t index = at[static_cast<size_t>(i)];
      if (index < 0 || index >= shape_.dim(i)) {
        return absl::InvalidArgumentError(
            absl::StrCat("sparsity: found index ", index, " in a dimension of ", shape_.dim(i)));
      }
      offset = offset * shape_.dim(i) + index;
    }
    if ((next_ + 1) * size_ > kept_.size()) {
      return absl::DataLossError(absl::StrCat("the sparse buffer has ", kept_.size(), " bytes, expected more"));
    }
    std::memcpy(out_ + static_cast<size_t>(offset) * size_, kept_.data() + next_ * size_, size_);
    ++next_;
    return absl::OkStatus();
  }

  Shape shape_;
  std::vector<Level> levels_;
  std::vector<int> block_map_;
  std::vector<int64_t> block_size_;
  absl::string_view kept_;
  size_t size_ = 0;
  char* out_ = nullptr;
  size_t next_ = 0;
};

}  // namespace

bool HasTfliteIdentifier(absl::string_view head) { return head.size() >= 8 && head.substr(4, 4) == "TFL3"; }

DType DTypeOfTflite(tflite::TensorType type) {
  switch (type) {
    case tflite::TensorType::FLOAT32:
      return DType::kFloat;
    case tflite::TensorType::FLOAT16:
      return DType::kHalf;
    case tflite::TensorType::INT32:
      return DType::kInt32;
    case tflite::TensorType::UINT8:
    case tflite::TensorType::UINT4:
      return DType::kUint8;
    case tflite::TensorType::INT64:
      return DType::kInt64;
    case tflite::TensorType::STRING:
      return DType::kString;
    case tflite::TensorType::BOOL:
      return DType::kBool;
    case tflite::TensorType::INT16:
      return DType::kInt16;
    case tflite::TensorType::COMPLEX64:
      return DType::kComplex64;
    case tflite::TensorType::INT8:
    case tflite::TensorType::INT4:
    case tflite::TensorType::INT2:
      return DType::kInt8;
    case tflite::TensorType::FLOAT64:
      return DType::kDouble;
    case tflite::TensorType::COMPLEX128:
      return DType::kComplex128;
    case tflite::TensorType::UINT64:
      return DType::kUint64;
    case tflite::TensorType::RESOURCE:
      return DType::kResource;
    case tflite::TensorType::VARIANT:
      return DType::kVariant;
    case tflite::TensorType::UINT32:
      return DType::kUint32;
    case tflite::TensorType::UINT16:
      return DType::kUint16;
    case tflite::TensorType::BFLOAT16:
      return DType::kBFloat16;
    default:
      return DType::kInvalid;
  }
}

CodeLimits LimitsOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return {std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max()};
    case DType::kUint8:
      return {0, std::numeric_limits<uint8_t>::max()};
    case DType::kInt16:
      return {std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max()};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

bool HasOwnLayout(tflite::TensorType type, bool is_sparse) {
  switch (type) {
    case tflite::TensorType::INT4:
    case tflite::TensorType::UINT4:
    case tflite::TensorType::INT2:
    case tflite::TensorType::STRING:
      return true;
    default:
      break;
  }
  const DType dtype = DTypeOfTflite(type);
  return is_sparse || dtype == DType::kInvalid || dtype == DType::kResource || dtype == DType::kVariant;
}

bool IsQuantized(const tflite::Tensor& tensor) {
  const auto* quantization = tensor.quantization();
  if (quantization == nullptr || quantization->scale() == nullptr || quantization->scale()->size() == 0) return false;
  switch (tensor.type()) {
    case tflite::TensorType::INT8:
    case tflite::TensorType::UINT8:
    case tflite::TensorType::INT16:
    case tflite::TensorType::INT32:
    case tflite::TensorType::INT64:
    case tflite::TensorType::INT4:
    case tflite::TensorType::INT2:
    case tflite::TensorType::UINT4:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<Shape> ShapeOfTflite(const tflite::Tensor& tensor) { return ShapeFrom(tensor.shape(), false); }

absl::StatusOr<Shape> OpenShapeOfTflite(const tflite::Tensor& tensor) {
  const auto* open = tensor.shape_signature();
  return open == nullptr || open->size() == 0 ? ShapeFrom(tensor.shape(), false) : ShapeFrom(open, true);
}

absl::StatusOr<TfliteContainer> TfliteContainer::Open(FileView file, uint64_t max_decoded_bytes) {
  const absl::string_view bytes = file.bytes;
  if (!HasTfliteIdentifier(bytes)) {
    return absl::InvalidArgumentError("found no identifier 'TFL3' at byte 4, expected a TensorFlow Lite model");
  }
  // The FlatBuffer is in the first 2 GiB; buffers may follow it.
  const size_t length = std::min(bytes.size(), static_cast<size_t>(FLATBUFFERS_MAX_BUFFER_SIZE) - 1);
  const uint64_t most_tables = std::min<uint64_t>(length / kLeastTableBytes + 1, UINT32_MAX);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), length, kMostDepth,
                                 static_cast<uint32_t>(most_tables));
  if (!tflite::VerifyModelBuffer(verifier)) {
    return absl::DataLossError(
        "the FlatBuffer is truncated or damaged: an offset or a length in it leads beyond its bounds");
  }
  TfliteContainer result;
  result.model_ = tflite::GetModel(bytes.data());
  result.file_ = std::move(file);
  result.decoded_bytes_left_ = max_decoded_bytes;
  PF_RETURN_IF_ERROR(result.CheckIndices());
  return result;
}

absl::Status TfliteContainer::CheckIndices() {
  if (model_->version() != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("found schema version ", model_->version(), ", expected ", kVersion));
  }
  if (model_->subgraphs() == nullptr || model_->subgraphs()->size() == 0) {
    return absl::InvalidArgumentError("the model has no subgraph, expected at least one");
  }
  auto is_set = std::make_shared<std::vector<std::vector<bool>>>();
  for (uint32_t i = 0; i < model_->subgraphs()->size(); ++i) {
    PF_RETURN_IF_ERROR(Annotate(CheckSubgraph(static_cast<int>(i)), absl::StrCat("subgraph ", i)));
    const tflite::SubGraph& graph = subgraph(static_cast<int>(i));
    std::vector<bool>& tensors = is_set->emplace_back(graph.tensors() == nullptr ? 0 : graph.tensors()->size());
    const auto set = [&tensors](const flatbuffers::Vector<int32_t>* indices) {
      for (uint32_t k = 0; indices != nullptr && k < indices->size(); ++k) tensors[indices->Get(k)] = true;
    };
    set(graph.inputs());
    for (uint32_t k = 0; graph.operators() != nullptr && k < graph.operators()->size(); ++k) {
      set(graph.operators()->Get(k)->outputs());
    }
  }
  is_set_ = std::move(is_set);
  return absl::OkStatus();
}

namespace {

// The object API of FlatBuffers dereferences the value of every union that has a known type.
template <typename Type>
bool LacksValue(Type type, Type last, const void* value) {
  return type != Type::NONE && type <= last && value == nullptr;
}

absl::Status CheckUnions(const tflite::Tensor& tensor) {
  const auto lacks_value = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("has a type of ", what, " without a value"));
  };
  const auto* quantization = tensor.quantization();
  if (quantization != nullptr &&
      LacksValue(quantization->details_type(), tflite::QuantizationDetails::MAX, quantization->details())) {
    return lacks_value("quantisation");
  }
  if (tensor.sparsity() == nullptr || tensor.sparsity()->dim_metadata() == nullptr) return absl::OkStatus();
  constexpr auto kLast = tflite::SparseIndexVector::MAX;
  for (const auto* level : *tensor.sparsity()->dim_metadata()) {
    if (LacksValue(level->array_segments_type(), kLast, level->array_segments()) ||
        LacksValue(level->array_indices_type(), kLast, level->array_indices())) {
      return lacks_value("sparse indices");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUnions(const tflite::Operator& op) {
  const bool lacks = LacksValue(op.builtin_options_type(), tflite::BuiltinOptions::MAX, op.builtin_options()) ||
                     LacksValue(op.builtin_options_2_type(), tflite::BuiltinOptions2::MAX, op.builtin_options_2());
  return lacks ? absl::InvalidArgumentError("has a type of options without a value") : absl::OkStatus();
}

}  // namespace

absl::Status TfliteContainer::CheckSubgraph(int index) const {
  const tflite::SubGraph& graph = subgraph(index);
  const int64_t num_tensors = graph.tensors() == nullptr ? 0 : graph.tensors()->size();
  const int64_t num_buffers = model_->buffers() == nullptr ? 0 : model_->buffers()->size();
  const int64_t num_codes = model_->operator_codes() == nullptr ? 0 : model_->operator_codes()->size();
  for (int64_t i = 0; i < num_tensors; ++i) {
    const tflite::Tensor& tensor = *graph.tensors()->Get(static_cast<uint32_t>(i));
    if (tensor.buffer() >= num_buffers && tensor.buffer() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, ": found buffer ", tensor.buffer(), ", expected less than ", num_buffers));
    }
    PF_RETURN_IF_ERROR(Annotate(CheckUnions(tensor), absl::StrCat("tensor ", i)));
  }
  const auto check = [num_tensors](const flatbuffers::Vector<int32_t>* indices, int32_t least,
                                   absl::string_view role) -> absl::Status {
    if (indices == nullptr) return absl::OkStatus();
    for (const int32_t i : *indices) {
      if (i < least || i >= num_tensors) {
        return absl::InvalidArgumentError(
            absl::StrCat(role, ": found tensor ", i, ", expected less than ", num_tensors));
      }
    }
    return absl::OkStatus();
  };
  PF_RETURN_IF_ERROR(check(graph.inputs(), 0, "inputs"));
  PF_RETURN_IF_ERROR(check(graph.outputs(), 0, "outputs"));
  const uint32_t num_operators = graph.operators() == nullptr ? 0 : graph.operators()->size();
  for (uint32_t i = 0; i < num_operators; ++i) {
    const tflite::Operator& op = *graph.operators()->Get(i);
    if (op.opcode_index() >= num_codes) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", i, ": found code ", op.opcode_index(), ", expected less than ", num_codes));
    }
    PF_RETURN_IF_ERROR(check(op.inputs(), -1, absl::StrCat("operator ", i, ": inputs")));
    PF_RETURN_IF_ERROR(check(op.outputs(), 0, absl::StrCat("operator ", i, ": outputs")));
    PF_RETURN_IF_ERROR(check(op.intermediates(), -1, absl::StrCat("operator ", i, ": intermediates")));
    PF_RETURN_IF_ERROR(Annotate(CheckUnions(op), absl::StrCat("operator ", i)));
  }
  return absl::OkStatus();
}

tflite::BuiltinOperator TfliteContainer::OperatorOf(const tflite::Operator& op) const {
  const tflite::OperatorCode& code = *model_->operator_codes()->Get(op.opcode_index());
  return static_cast<tflite::BuiltinOperator>(
      std::max<int32_t>(code.deprecated_builtin_code(), static_cast<int32_t>(code.builtin_code())));
}

absl::string_view TfliteContainer::CustomName(const tflite::Operator& op) const {
  const auto* name = model_->operator_codes()->Get(op.opcode_index())->custom_code();
  return name == nullptr ? absl::string_view() : absl::string_view(name->c_str(), name->size());
}

std::string TfliteContainer::OperatorName(const tflite::Operator& op) const {
  const tflite::BuiltinOperator number = OperatorOf(op);
  if (number == tflite::BuiltinOperator::CUSTOM) return absl::StrCat("CUSTOM '", absl::CEscape(CustomName(op)), "'");
  const char* name = tflite::EnumNameBuiltinOperator(number);
  return *name == '\0' ? absl::StrCat("operator number ", static_cast<int32_t>(number)) : name;
}

absl::StatusOr<absl::string_view> TfliteContainer::BufferBytes(uint32_t index) const {
  const tflite::Buffer& buffer = *model_->buffers()->Get(index);
  if (buffer.offset() > 1) {
    absl::StatusOr<absl::string_view> bytes = BytesAt(buffer.offset(), buffer.size());
    PF_RETURN_IF_ERROR(Annotate(bytes.status(), absl::StrCat("buffer ", index)));
    return bytes;
  }
  if (buffer.data() == nullptr) return absl::string_view();
  return absl::string_view(reinterpret_cast<const char*>(buffer.data()->data()), buffer.data()->size());
}
absl::StatusOr<absl::string_view> TfliteContainer::BytesAt(uint64_t offset, uint64_t size) const {
  if (offset > file_.bytes.size() || size > file_.bytes.size() - offset) {
    return absl::DataLossError(
        absl::StrCat("found ", size, " bytes at ", offset, ", expected them inside the file of ", file_.bytes.size()));
  }
  return file_.bytes.substr(offset, size);
}

absl::StatusOr<Tensor> TfliteContainer::Stored(const tflite::Tensor& tensor) const {
  PF_ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(tensor));
  if (HasOwnLayout(tensor.type(), tensor.sparsity() != nullptr)) {
    return Tensor::FromBytes(DType::kUint8, Shape({static_cast<int64_t>(bytes.size())}), bytes, file_.owner);
  }
  PF_ASSIGN_OR_RETURN(const Shape shape, ShapeOfTflite(tensor));
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  return Tensor::FromBytes(DTypeOfTflite(tensor.type()), shape, bytes, file_.owner);
}

bool TfliteContainer::HasData(const tflite::Tensor& tensor) const {
  if (tensor.buffer() == 0 || tensor.is_variable()) return false;
  const tflite::Buffer& buffer = *model_->buffers()->Get(tensor.buffer());
  return buffer.offset() > 1 ? buffer.size() > 0 : buffer.data() != nullptr && buffer.data()->size() > 0;
}

bool TfliteContainer::IsConstant(const tflite::Tensor& tensor) const {
  if (HasData(tensor)) return true;
  // A constant without elements has an empty buffer other than buffer 0.
  const auto* shape = tensor.shape();
  return tensor.buffer() != 0 && !tensor.is_variable() && shape != nullptr &&
         std::find(shape->begin(), shape->end(), 0) != shape->end();
}

bool TfliteContainer::IsConstantOperand(int subgraph, int tensor) const {
  return !(*is_set_)[static_cast<size_t>(subgraph)][static_cast<size_t>(tensor)] &&
         IsConstant(this->tensor(subgraph, tensor));
}

absl::Status TfliteContainer::TakeMade(uint64_t bytes) {
  // Positions of a window have a number for each of its elements and results. Those of real models fit in the least
  // limit; without one, a file of 100 bytes for each operator could ask for megabytes each.
  constexpr uint64_t kFileFactor = 4, kLeast = 32 << 20;
  const uint64_t limit = kFileFactor * file_.bytes.size() + kLeast;
  if (bytes > limit - made_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("needs ", bytes, " bytes of positions, expected at most ",
                                                     limit - made_bytes_, " more for a file of ", file_.bytes.size(),
                                                     " bytes"));
  }
  made_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status TfliteContainer::TakeDecoded(uint64_t bytes) {
  if (bytes > decoded_bytes_left_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("decoding needs ", bytes, " bytes, expected at most ", decoded_bytes_left_, " more"));
  }
  decoded_bytes_left_ -= bytes;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TfliteContainer::InitialState(const tflite::Tensor& tensor) {
  PF_ASSIGN_OR_RETURN(const Shape shape, ShapeOfTflite(tensor));
  const DType dtype = DTypeOfTflite(tensor.type());
  int64_t zero_point = 0;
  if (IsQuantized(tensor) && tensor.quantization()->zero_point() != nullptr &&
      tensor.quantization()->zero_point()->size() > 0) {
    zero_point = tensor.quantization()->zero_point()->Get(0);
  }
  const CodeLimits limits = LimitsOf(dtype);
  const bool is_integer = dtype == DType::kInt8 || dtype == DType::kInt16;
  if (dtype != DType::kFloat && !is_integer) {
    return absl::UnimplementedError(
        absl::StrCat("a variable tensor is ", DTypeName(dtype), ", expected float, int8 or int16"));
  }
  if (is_integer && (zero_point < limits.low || zero_point > limits.high)) {
    return absl::InvalidArgumentError(absl::StrCat("a variable tensor has the zero point ", zero_point, ", expected ",
                                                   limits.low, " to ", limits.high));
  }
  const auto count = static_cast<uint64_t>(shape.num_elements());
  // The file has weights for each cell, so states of real models are smaller than this even for large batches. Without
  // a limit, a small file could ask for much memory.
  constexpr uint64_t kFileFactor = 4, kLeast = 1 << 20;
  const uint64_t limit = kFileFactor * file_.bytes.size() + kLeast;
  if (count > limit / SizeOf(dtype) || count * SizeOf(dtype) > limit - state_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the state of shape ", shape.ToString(), " exceeds what is left of ", limit,
                     " bytes, the limit for all states of a file of ", file_.bytes.size(), " bytes"));
  }
  state_bytes_ += count * SizeOf(dtype);
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(dtype, shape, &data));
  if (dtype == DType::kInt16) {
    std::fill_n(reinterpret_cast<int16_t*>(data), count, static_cast<int16_t>(zero_point));
  } else {
    std::memset(data, static_cast<int>(zero_point), count * SizeOf(dtype));
  }
  return value;
}

absl::StatusOr<Tensor> TfliteContainer::Value(const tflite::Tensor& tensor) {
  PF_ASSIGN_OR_RETURN(const Shape shape, ShapeOfTflite(tensor));
  const DType dtype = DTypeOfTflite(tensor.type());
  if (dtype == DType::kInvalid || dtype == DType::kResource || dtype == DType::kVariant) {
    return absl::UnimplementedError(absl::StrCat("found a constant of type ", tflite::EnumNameTensorType(tensor.type()),
                                                 ", which has no values here"));
  }
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  PF_ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(tensor));
  if (dtype == DType::kString) return Strings(shape, bytes);
  if (tensor.sparsity() != nullptr) return Dense(*tensor.sparsity(), dtype, shape, bytes);
  switch (tensor.type()) {
    case tflite::TensorType::INT4:
      return Unpacked(shape, bytes, 4, true);
    case tflite::TensorType::UINT4:
      return Unpacked(shape, bytes, 4, false);
    case tflite::TensorType::INT2:
      return Unpacked(shape, bytes, 2, true);
    default:
      return Tensor::FromBytes(dtype, shape, bytes, file_.owner);
  }
}

absl::StatusOr<Tensor> TfliteContainer::Strings(const Shape& shape, absl::string_view bytes) {
  // Layout: the number of strings, their offsets and the end of the last one as 32-bit numbers, then the characters.
  const int64_t count = shape.num_elements();
  const uint64_t found = bytes.size() < 4 ? 0 : Reads32(bytes.data());
  if (count < 0 || found != static_cast<uint64_t>(count) || bytes.size() / 4 < found + 2) {
    return absl::DataLossError(
        absl::StrCat("the buffer of strings of ", bytes.size(), " bytes has ", found, " strings, expected ", count));
  }
  PF_RETURN_IF_ERROR(TakeDecoded(bytes.size() + found * sizeof(std::string)));
  std::vector<std::string> strings;
  strings.reserve(found);
  for (uint64_t i = 0; i < found; ++i) {
    const uint64_t begin = Reads32(bytes.data() + 4 * (i + 1)), end = Reads32(bytes.data() + 4 * (i + 2));
    if (begin > end || end > bytes.size()) {
      return absl::DataLossError(
          absl::StrCat("string ", i, " lies at bytes ", begin, " to ", end, " of ", bytes.size()));
    }
    strings.emplace_back(bytes.substr(begin, end - begin));
  }
  return Tensor::FromStrings(shape, std::move(strings));
}

absl::StatusOr<Tensor> TfliteContainer::Unpacked(const Shape& shape, absl::string_view bytes, int bits,
                                                 bool is_signed) {
  const int64_t count = shape.num_elements();
  const int per_byte = 8 / bits;
  if (count < 0 || static_cast<uint64_t>(count / per_byte + (count % per_byte != 0)) != bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("the buffer has ", bytes.size(), " bytes, expected ", count, " elements of ", bits, " bits"));
  }
  PF_RETURN_IF_ERROR(TakeDecoded(static_cast<uint64_t>(count)));
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(is_signed ? DType::kInt8 : DType::kUint8, shape, &data));
  for (int64_t i = 0; i < count; ++i) {
    const int code =
        static_cast<uint8_t>(bytes[static_cast<size_t>(i / per_byte)]) >> (i % per_byte * bits) & ((1 << bits) - 1);
    data[i] = static_cast<char>(is_signed && code >> (bits - 1) ? code - (1 << bits) : code);
  }
  return tensor;
}

absl::StatusOr<Tensor> TfliteContainer::Dense(const tflite::SparsityParameters& sparsity, DType dtype,
                                              const Shape& shape, absl::string_view bytes) {
  PF_ASSIGN_OR_RETURN(Densifier densifier, Densifier::Make(sparsity, shape));
  const size_t size = SizeOf(dtype);
  const int64_t count = shape.num_elements();
  if (count < 0 || static_cast<uint64_t>(count) > decoded_bytes_left_ / size) {
    return absl::ResourceExhaustedError(absl::StrCat("a sparse tensor of shape ", shape.ToString(), " needs more than ",
                                                     decoded_bytes_left_, " bytes"));
  }
  PF_RETURN_IF_ERROR(TakeDecoded(static_cast<uint64_t>(count) * size));
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape, &data));
  std::memset(data, 0, static_cast<size_t>(count) * size);
  PF_RETURN_IF_ERROR(densifier.Run(bytes, size, data));
  return tensor;
}

}  // namespace permafrost

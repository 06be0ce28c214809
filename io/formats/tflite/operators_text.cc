// Operators of text models of 2017: lookups by key, sums of embeddings.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/index_nodes.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

// Operands: keys to find, keys of the table, rows of the table. The rows of keys that are not found are zero, and the
// second result tells which were found.
Results HashTableLookup(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef wanted, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef keys, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef rows, op->Input(2));
  PF_ASSIGN_OR_RETURN(const Shape shape, op->InputShape(2));
  if (op->InputType(0) != DType::kInt32 || op->InputType(1) != DType::kInt32 || shape.rank() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("has keys of ", DTypeName(op->InputType(0)), " and ",
                                                   DTypeName(op->InputType(1)), " and a table of shape ",
                                                   shape.ToString(), ", expected keys of int32 and rows"));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef columns, ExtendRank(op, wanted, 1, 1));
  PF_ASSIGN_OR_RETURN(const TensorRef equal, op->Emit(ops::kEqual, {columns, keys}));
  PF_ASSIGN_OR_RETURN(const TensorRef axes, op->Ints({1}));
  PF_ASSIGN_OR_RETURN(TensorRef found, op->Emit(ops::kAny, {equal, axes}));
  PF_ASSIGN_OR_RETURN(const TensorRef numbers, CastTo(op, equal, DType::kInt32));
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(1)));
  PF_ASSIGN_OR_RETURN(const TensorRef index,
                      op->Emit(ops::kArgMax, {numbers, axis}, {{"output_type", AttrValue::Type(DType::kInt32)}}));
  PF_ASSIGN_OR_RETURN(const TensorRef first, op->Const(Tensor::Scalar<int32_t>(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef values, op->Emit(ops::kGatherV2, {rows, index, first}));
  PF_ASSIGN_OR_RETURN(const TensorRef zeros, op->Emit(ops::kZerosLike, {values}));
  PF_ASSIGN_OR_RETURN(const TensorRef is_found, ExtendRank(op, found, 1, shape.rank() - 1));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kSelectV2, {is_found, values, zeros}));
  PF_ASSIGN_OR_RETURN(found, CastTo(op, found, DType::kUint8));
  return std::vector<TensorRef>{y, found};
}

// Operands: rows of the table, positions in a sparse tensor, its shape, weights, the table. The last dimension of the
// sparse tensor is summed.
Results EmbeddingLookupSparse(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::EmbeddingLookupSparseOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const TensorRef ids, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef positions, op->Input(1));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantIntegers(op, 2));
  PF_ASSIGN_OR_RETURN(const TensorRef weights, op->Input(3));
  PF_ASSIGN_OR_RETURN(const TensorRef table, op->Input(4));
  PF_ASSIGN_OR_RETURN(const Shape rows, KnownInputShape(*op, 4));
  constexpr int64_t kMost = int64_t{1} << 31;
  int64_t count = 1;
  std::vector<int32_t> strides(dims.size(), 0);
  for (size_t k = dims.size(); k-- > 0;) {
    if (dims[k] < 0 || (k + 1 < dims.size() && dims[k] > 0 && count > kMost / dims[k])) {
      return absl::InvalidArgumentError(absl::StrCat("has a sparse tensor with a dimension of ", dims[k]));
    }
    if (k + 1 == dims.size()) continue;
    strides[k] = static_cast<int32_t>(count);
    count *= dims[k];
  }
  if (dims.empty() || rows.rank() < 1 || count >= kMost || op->InputType(1) != DType::kInt32 ||
      op->InputType(4) != DType::kFloat || op->InputType(3) != DType::kFloat) {
    return absl::InvalidArgumentError("has operands of other types or shapes than expected");
  }
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(0)));
  PF_ASSIGN_OR_RETURN(TensorRef values, op->Emit(ops::kGatherV2, {table, ids, axis}));
  PF_ASSIGN_OR_RETURN(const TensorRef factors, ExtendRank(op, weights, 1, rows.rank() - 1));
  PF_ASSIGN_OR_RETURN(values, op->Emit(ops::kMul, {values, factors}));
  PF_ASSIGN_OR_RETURN(const TensorRef distances, op->Ints(strides));
  PF_ASSIGN_OR_RETURN(TensorRef segments, op->Emit(ops::kMul, {positions, distances}));
  PF_ASSIGN_OR_RETURN(const TensorRef last, op->Ints({1}));
  PF_ASSIGN_OR_RETURN(segments, op->Emit(ops::kSum, {segments, last}));
  PF_ASSIGN_OR_RETURN(const TensorRef num_segments, op->Const(Tensor::Scalar(static_cast<int32_t>(count))));
  PF_ASSIGN_OR_RETURN(TensorRef y, op->Emit(ops::kUnsortedSegmentSum, {values, segments, num_segments}));
  if (options->combiner() != tflite::CombinerType::SUM) {
    const bool is_mean = options->combiner() == tflite::CombinerType::MEAN;
    TensorRef total = weights;
    if (!is_mean) {
      PF_ASSIGN_OR_RETURN(total, op->Emit(ops::kSquare, {weights}));
    }
    PF_ASSIGN_OR_RETURN(total, op->Emit(ops::kUnsortedSegmentSum, {total, segments, num_segments}));
    if (!is_mean) {
      PF_ASSIGN_OR_RETURN(total, op->Emit(ops::kSqrt, {total}));
    }
    PF_ASSIGN_OR_RETURN(total, ExtendRank(op, total, 1, rows.rank() - 1));
    PF_ASSIGN_OR_RETURN(y, op->Emit(ops::kDivNoNan, {y, total}));
  }
  std::vector<int64_t> shape(dims.begin(), dims.end() - 1);
  for (int d = 1; d < rows.rank(); ++d) shape.push_back(rows.dim(d));
  const Shape rank({static_cast<int64_t>(shape.size())});
  PF_ASSIGN_OR_RETURN(const TensorRef target, Longs(op, rank, std::move(shape)));
  PF_ASSIGN_OR_RETURN(y, op->Emit(ops::kReshape, {y, target}));
  return std::vector<TensorRef>{y};
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::HASHTABLE_LOOKUP, 3, 2, HashTableLookup},
    {BuiltinOperator::EMBEDDING_LOOKUP_SPARSE, 5, 1, EmbeddingLookupSparse},
};

}  // namespace

absl::Span<const OperatorRow> TextOperators() { return kRows; }

}  // namespace permafrost

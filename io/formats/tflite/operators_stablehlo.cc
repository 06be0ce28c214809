// StableHLO operators for which LiteRT has kernels, apart from those on windows. All but STABLEHLO_CASE are only read;
// TensorFlow's ops have operators of TensorFlow Lite.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/binary_subgraph.h"
#include "io/formats/tflite/index_nodes.h"
#include "io/formats/tflite/operator_import.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

// Operands have one shape and one type.
absl::Status RequireEqualTypes(const OperatorImport& op) {
  return op.InputType(0) == op.InputType(1) ? absl::OkStatus()
                                            : absl::InvalidArgumentError("has operands of different types");
}

template <ops::OpId kOp>
Results Binary(OperatorImport* op) {
  PF_RETURN_IF_ERROR(RequireEqualTypes(*op));
  return Direct<kOp>(op);
}

Results And(OperatorImport* op) {
  PF_RETURN_IF_ERROR(RequireEqualTypes(*op));
  return op->InputType(0) == DType::kBool ? Direct<ops::kLogicalAnd>(op) : Direct<ops::kBitwiseAnd>(op);
}

// A shift by a negative number, or by at least the bits of the type, gives 0.
Results ShiftLeft(OperatorImport* op) {
  PF_RETURN_IF_ERROR(RequireEqualTypes(*op));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef count, op->Input(1));
  const double bits = 8.0 * static_cast<double>(SizeOf(op->InputType(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef zero, op->ScalarLike(x, 0));
  PF_ASSIGN_OR_RETURN(const TensorRef most, op->ScalarLike(x, bits));
  PF_ASSIGN_OR_RETURN(const TensorRef is_positive, op->Emit(ops::kGreaterEqual, {count, zero}));
  PF_ASSIGN_OR_RETURN(const TensorRef is_small, op->Emit(ops::kLess, {count, most}));
  PF_ASSIGN_OR_RETURN(const TensorRef shifts, op->Emit(ops::kLogicalAnd, {is_positive, is_small}));
  PF_ASSIGN_OR_RETURN(const TensorRef shifted, op->Emit(ops::kLeftShift, {x, count}));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kSelectV2, {shifts, shifted, zero}));
  return std::vector<TensorRef>{y};
}

// Operands: the number of the branch, then those of the branches. Another number selects the last branch, as that of
// TensorFlow's Case does.
Results Case(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::StablehloCaseOptions>();
  if (options == nullptr || options->branch_subgraph_indices() == nullptr ||
      options->branch_subgraph_indices()->size() == 0) {
    return absl::InvalidArgumentError("has no branches");
  }
  PF_ASSIGN_OR_RETURN(std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(inputs[0], CastTo(op, inputs[0], DType::kInt32));
  std::vector<int> subgraphs;
  std::vector<FunctionRef> branches;
  for (const int32_t index : *options->branch_subgraph_indices()) {
    PF_ASSIGN_OR_RETURN(branches.emplace_back(), op->FunctionOf(index));
    subgraphs.push_back(index);
  }
  std::vector<DType> types;
  for (int i = 0; i < op->num_outputs(); ++i) types.push_back(op->OutputType(i));
  PF_ASSIGN_OR_RETURN(Node * node, op->AddCall(ops::kStatelessCase, ops::kCase, subgraphs, inputs,
                                               {{"Tout", AttrValue::TypeList(types)},
                                                {"branches", AttrValue::FunctionList(branches)}}));
  return AllOutputs(node, op->num_outputs());
}

// --- Gathering and scattering ----------------------------------------------------------------------------------------

absl::StatusOr<std::vector<int64_t>> Dimensions(const flatbuffers::Vector<int64_t>* dims, int64_t limit,
                                                absl::string_view name) {
  std::vector<int64_t> result;
  for (uint32_t i = 0; dims != nullptr && i < dims->size(); ++i) {
    const int64_t d = dims->Get(i);
    if (d < 0 || d >= limit || std::find(result.begin(), result.end(), d) != result.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", d, " in ", name, ", expected different numbers of 0 to ", limit - 1));
    }
    result.push_back(d);
  }
  return result;
}

bool Holds(const std::vector<int64_t>& numbers, int64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Start indices with the vectors in the last dimension, as int64, and the shape before it.
struct Starts {
  TensorRef vectors;
  std::vector<int64_t> batch;
  int64_t length = 1;  // Of a vector.
};

absl::StatusOr<Starts> StartsOf(OperatorImport* op, int operand, int64_t vector_dim) {
  Starts starts;
  PF_ASSIGN_OR_RETURN(starts.vectors, op->Input(operand));
  PF_ASSIGN_OR_RETURN(const Shape shape, KnownInputShape(*op, operand));
  if (vector_dim < 0 || vector_dim > shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has the index_vector_dim ", vector_dim, ", expected 0 to ", shape.rank()));
  }
  PF_ASSIGN_OR_RETURN(starts.vectors, CastTo(op, starts.vectors, DType::kInt64));
  std::vector<int32_t> perm;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d == vector_dim) continue;
    perm.push_back(d);
    starts.batch.push_back(shape.dim(d));
  }
  if (vector_dim == shape.rank()) {
    PF_ASSIGN_OR_RETURN(starts.vectors, ExtendRank(op, starts.vectors, shape.rank(), 1));
  } else {
    starts.length = shape.dim(static_cast<int>(vector_dim));
    perm.push_back(static_cast<int32_t>(vector_dim));
    PF_ASSIGN_OR_RETURN(starts.vectors, Transposed(op, starts.vectors, perm));
  }
  return starts;
}

// Sums of the coordinates in a window, in the shape `sizes` of the window: dimension k of it is dimension `dims[k]` of
// the tensor, with the weight of that.
absl::StatusOr<TensorRef> WindowPositions(OperatorImport* op, const std::vector<int64_t>& dims,
                                          const std::vector<int64_t>& sizes, const std::vector<int64_t>& weights) {
  const Shape window(sizes);
  constexpr int64_t kMostPositions = 1 << 22;
  if (window.num_elements() > kMostPositions) {
    return absl::UnimplementedError(
        absl::StrCat("has slices of ", window.num_elements(), " elements, expected at most ", kMostPositions));
  }
  std::vector<int64_t> positions(static_cast<size_t>(window.num_elements()), 0);
  const std::vector<int64_t> strides = StridesOf(window);
  for (size_t i = 0; i < positions.size(); ++i) {
    for (size_t k = 0; k < sizes.size(); ++k) {
      positions[i] += static_cast<int64_t>(i) / strides[k] % sizes[k] * weights[static_cast<size_t>(dims[k])];
    }
  }
  return Longs(op, window, std::move(positions));
}

// Operands: a tensor, and vectors with the first position of each slice. Slices beyond the end are moved inside.
Results Gather(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::StablehloGatherOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const Shape shape, KnownInputShape(*op, 0));
  PF_ASSIGN_OR_RETURN(const Starts starts, StartsOf(op, 1, options->index_vector_dim()));
  PF_ASSIGN_OR_RETURN(const auto collapsed,
                      Dimensions(options->collapsed_slice_dims(), shape.rank(), "collapsed_slice_dims"));
  PF_ASSIGN_OR_RETURN(const auto start_dims, Dimensions(options->start_index_map(), shape.rank(), "start_index_map"));
  const auto* sizes = options->slice_sizes();
  if (sizes == nullptr || static_cast<int>(sizes->size()) != shape.rank() ||
      static_cast<int64_t>(start_dims.size()) != starts.length) {
    return absl::InvalidArgumentError(absl::StrCat("has ", sizes == nullptr ? 0 : sizes->size(), " slice_sizes and ",
                                                   start_dims.size(), " numbers in start_index_map, expected ",
                                                   shape.rank(), " and ", starts.length));
  }
  std::vector<int64_t> slice_dims, slice_sizes;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t size = sizes->Get(static_cast<uint32_t>(d));
    const bool is_collapsed = Holds(collapsed, d);
    if (size < 0 || size > shape.dim(d) || (is_collapsed && size != 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has slices of ", size, " elements in dimension ", d, " of ", shape.ToString()));
    }
    if (is_collapsed) continue;
    slice_dims.push_back(d);
    slice_sizes.push_back(size);
  }
  const int num_batch = static_cast<int>(starts.batch.size()), num_slice = static_cast<int>(slice_dims.size());
  PF_ASSIGN_OR_RETURN(const auto offset_dims, Dimensions(options->offset_dims(), num_batch + num_slice, "offset_dims"));
  if (static_cast<int>(offset_dims.size()) != num_slice) {
    return absl::InvalidArgumentError(absl::StrCat("has ", offset_dims.size(), " offset_dims, expected ", num_slice));
  }
  const std::vector<int64_t> strides = StridesOf(shape);
  std::vector<int64_t> most, weights;
  for (const int64_t d : start_dims) {
    most.push_back(shape.dim(static_cast<int>(d)) - sizes->Get(static_cast<uint32_t>(d)));
    weights.push_back(strides[static_cast<size_t>(d)]);
  }
  const Shape vector({static_cast<int64_t>(start_dims.size())});
  PF_ASSIGN_OR_RETURN(const TensorRef limits, Longs(op, vector, most));
  PF_ASSIGN_OR_RETURN(const TensorRef zero, Longs(op, Shape(), {0}));
  PF_ASSIGN_OR_RETURN(const TensorRef factors, Longs(op, vector, weights));
  PF_ASSIGN_OR_RETURN(TensorRef position, op->Emit(ops::kMinimum, {starts.vectors, limits}));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kMaximum, {position, zero}));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kMul, {position, factors}));
  PF_ASSIGN_OR_RETURN(const TensorRef last, op->Ints({num_batch}));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kSum, {position, last}));
  PF_ASSIGN_OR_RETURN(position, ExtendRank(op, position, num_batch, num_slice));
  PF_ASSIGN_OR_RETURN(const TensorRef offsets, WindowPositions(op, slice_dims, slice_sizes, strides));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kAddV2, {position, offsets}));
  PF_ASSIGN_OR_RETURN(const TensorRef flat, op->Ints({-1}));
  PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kReshape, {x, flat}));
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(0)));
  PF_ASSIGN_OR_RETURN(TensorRef y, op->Emit(ops::kGatherV2, {x, position, axis}));
  std::vector<int32_t> perm;
  int32_t next_batch = 0, next_slice = num_batch;
  for (int d = 0; d < num_batch + num_slice; ++d) perm.push_back(Holds(offset_dims, d) ? next_slice++ : next_batch++);
  PF_ASSIGN_OR_RETURN(y, Transposed(op, y, perm));
  return std::vector<TensorRef>{y};
}

absl::StatusOr<ScatterKind> KindOfScatter(const TfliteContainer& container, int32_t subgraph) {
  if (ReturnsSecondInput(container, subgraph)) return ScatterKind::kReplace;
  PF_ASSIGN_OR_RETURN(const tflite::ReduceWindowFunction function, FunctionOfSubgraph(container, subgraph));
  switch (function) {
    case tflite::ReduceWindowFunction::ADD:
      return ScatterKind::kAdd;
    case tflite::ReduceWindowFunction::MINIMUM:
      return ScatterKind::kMin;
    case tflite::ReduceWindowFunction::MAXIMUM:
      return ScatterKind::kMax;
    default:
      return absl::UnimplementedError(
          "combines updates with elements by neither replacement, sum, minimum nor maximum");
  }
}

// Operands: a tensor, vectors with the first position of each window of updates, updates. Elements of updates outside
// of the tensor are skipped.
Results Scatter(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::StablehloScatterOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (op->num_inputs() != 3) {
    return absl::UnimplementedError(absl::StrCat("has ", op->num_inputs(), " operands, expected 3"));
  }
  PF_ASSIGN_OR_RETURN(const ScatterKind kind,
                      KindOfScatter(op->subgraph().model().container(), options->update_computation_subgraph_index()));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const Shape shape, KnownInputShape(*op, 0));
  PF_ASSIGN_OR_RETURN(const Starts starts, StartsOf(op, 1, options->index_vector_dim()));
  PF_ASSIGN_OR_RETURN(TensorRef updates, op->Input(2));
  PF_ASSIGN_OR_RETURN(const Shape update_shape, KnownInputShape(*op, 2));
  PF_ASSIGN_OR_RETURN(const auto inserted,
                      Dimensions(options->inserted_window_dims(), shape.rank(), "inserted_window_dims"));
  PF_ASSIGN_OR_RETURN(const auto start_dims, Dimensions(options->scatter_dims_to_operand_dims(), shape.rank(),
                                                        "scatter_dims_to_operand_dims"));
  PF_ASSIGN_OR_RETURN(const auto window_in_updates,
                      Dimensions(options->update_window_dims(), update_shape.rank(), "update_window_dims"));
  std::vector<int64_t> window_dims, window_sizes;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!Holds(inserted, d)) window_dims.push_back(d);
  }
  const int num_batch = static_cast<int>(starts.batch.size()), num_window = static_cast<int>(window_dims.size());
  if (static_cast<int>(window_in_updates.size()) != num_window || update_shape.rank() != num_batch + num_window ||
      static_cast<int64_t>(start_dims.size()) != starts.length) {
    return absl::InvalidArgumentError(
        absl::StrCat("has updates of shape ", update_shape.ToString(), " with ", window_in_updates.size(),
                     " dimensions of windows and ", start_dims.size(), " scattered dimensions, expected ",
                     num_batch + num_window, " dimensions, ", num_window, " and ", starts.length));
  }
  // Updates with the dimensions of windows at the end.
  std::vector<int32_t> perm;
  std::vector<int64_t> batch;
  for (int d = 0; d < update_shape.rank(); ++d) {
    if (Holds(window_in_updates, d)) continue;
    perm.push_back(d);
    batch.push_back(update_shape.dim(d));
  }
  if (batch != starts.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("has updates of shape ", update_shape.ToString(), ", which do not fit its indices"));
  }
  for (int d = 0; d < update_shape.rank(); ++d) {
    if (!Holds(window_in_updates, d)) continue;
    perm.push_back(d);
    window_sizes.push_back(update_shape.dim(d));
  }
  PF_ASSIGN_OR_RETURN(updates, Transposed(op, updates, perm));
  const std::vector<int64_t> strides = StridesOf(shape);
  PF_ASSIGN_OR_RETURN(TensorRef position, WindowPositions(op, window_dims, window_sizes, strides));
  PF_ASSIGN_OR_RETURN(TensorRef is_valid, op->Const(Tensor::Scalar(true)));
  PF_ASSIGN_OR_RETURN(const TensorRef zero, Longs(op, Shape(), {0}));
  PF_ASSIGN_OR_RETURN(const TensorRef last, op->Const(Tensor::Scalar<int32_t>(num_batch)));
  for (size_t k = 0; k < start_dims.size(); ++k) {
    const int64_t d = start_dims[k];
    PF_ASSIGN_OR_RETURN(const TensorRef component, Longs(op, Shape(), {static_cast<int64_t>(k)}));
    PF_ASSIGN_OR_RETURN(TensorRef start, op->Emit(ops::kGatherV2, {starts.vectors, component, last}));
    PF_ASSIGN_OR_RETURN(start, ExtendRank(op, start, num_batch, num_window));
    // The coordinate of each element of the window in dimension d.
    std::vector<int64_t> unit(strides.size(), 0);
    unit[static_cast<size_t>(d)] = 1;
    PF_ASSIGN_OR_RETURN(const TensorRef offsets, WindowPositions(op, window_dims, window_sizes, unit));
    PF_ASSIGN_OR_RETURN(const TensorRef coordinate, op->Emit(ops::kAddV2, {start, offsets}));
    PF_ASSIGN_OR_RETURN(const TensorRef size, Longs(op, Shape(), {shape.dim(static_cast<int>(d))}));
    PF_ASSIGN_OR_RETURN(const TensorRef is_low, op->Emit(ops::kGreaterEqual, {coordinate, zero}));
    PF_ASSIGN_OR_RETURN(const TensorRef is_high, op->Emit(ops::kLess, {coordinate, size}));
    PF_ASSIGN_OR_RETURN(is_valid, op->Emit(ops::kLogicalAnd, {is_valid, is_low}));
    PF_ASSIGN_OR_RETURN(is_valid, op->Emit(ops::kLogicalAnd, {is_valid, is_high}));
    PF_ASSIGN_OR_RETURN(const TensorRef stride, Longs(op, Shape(), {strides[static_cast<size_t>(d)]}));
    PF_ASSIGN_OR_RETURN(start, op->Emit(ops::kMul, {start, stride}));
    PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kAddV2, {position, start}));
  }
  // Without scattered dimensions, the window has the same place for all.
  std::vector<int64_t> all = batch;
  all.insert(all.end(), window_sizes.begin(), window_sizes.end());
  PF_ASSIGN_OR_RETURN(const TensorRef whole, Longs(op, Shape({static_cast<int64_t>(all.size())}), all));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kBroadcastTo, {position, whole}));
  PF_ASSIGN_OR_RETURN(is_valid, op->Emit(ops::kBroadcastTo, {is_valid, whole}));
  for (size_t k = 0; k < window_dims.size(); ++k) {
    if (window_sizes[k] > shape.dim(static_cast<int>(window_dims[k]))) {
      return absl::InvalidArgumentError(absl::StrCat("has windows of ", window_sizes[k], " elements in dimension ",
                                                     window_dims[k], " of ", shape.ToString()));
    }
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y, ScatterLinear(op, x, shape, position, is_valid, updates, kind));
  return std::vector<TensorRef>{y};
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::STABLEHLO_ADD, 2, 1, Binary<ops::kAddV2>},
    {BuiltinOperator::STABLEHLO_MULTIPLY, 2, 1, Binary<ops::kMul>},
    {BuiltinOperator::STABLEHLO_MAXIMUM, 2, 1, Binary<ops::kMaximum>},
    {BuiltinOperator::STABLEHLO_MINIMUM, 2, 1, Binary<ops::kMinimum>},
    {BuiltinOperator::STABLEHLO_AND, 2, 1, And},
    {BuiltinOperator::STABLEHLO_SHIFT_LEFT, 2, 1, ShiftLeft},
    {BuiltinOperator::STABLEHLO_CASE, 1, -1, Case, Codes::kMoved,
     Form({ops::kStatelessCase, ops::kCase}, kPlain, ExportCase, "", "2.17")},
    {BuiltinOperator::STABLEHLO_GATHER, 2, 1, Gather},
    {BuiltinOperator::STABLEHLO_SCATTER, 3, 1, Scatter},
};

}  // namespace

absl::Span<const OperatorRow> StablehloOperators() { return kRows; }

}  // namespace permafrost

// Operators that create, move, select and reshape elements.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

std::vector<int32_t> Copied(const flatbuffers::Vector<int32_t>* values) {
  return values == nullptr ? std::vector<int32_t>() : std::vector<int32_t>(values->begin(), values->end());
}

// True if two quantised tensors represent numbers by the same codes.
bool HaveSameScale(const tflite::Tensor& a, const tflite::Tensor& b) {
  const auto point = [](const tflite::Tensor& tensor) {
    const auto* points = tensor.quantization()->zero_point();
    return points == nullptr || points->size() == 0 ? int64_t{0} : points->Get(0);
  };
  return a.quantization()->scale()->Get(0) == b.quantization()->scale()->Get(0) && point(a) == point(b);
}

// Codes of uint8 are rescaled to those of the result; other codes are copied.
Results Concatenation(OperatorImport* op) {
  if (op->IsQuantizedOutput(0) && op->OutputTensor(0).type() == tflite::TensorType::UINT8) {
    for (int i = 0; i < op->num_inputs(); ++i) {
      if (op->IsQuantizedInput(i) && !HaveSameScale(op->InputTensor(i), op->OutputTensor(0))) op->ComputeWithCodes();
    }
  }
  PF_ASSIGN_OR_RETURN(std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::ConcatenationOptions>();
  const int32_t axis = options == nullptr ? 0 : options->axis();
  TensorRef joined = inputs[0];
  // TensorFlow's op takes at least two values.
  if (inputs.size() > 1) {
    PF_ASSIGN_OR_RETURN(const TensorRef axis_value, op->Const(Tensor::Scalar(axis)));
    const int64_t count = static_cast<int64_t>(inputs.size());
    inputs.push_back(axis_value);
    PF_ASSIGN_OR_RETURN(joined, op->Emit(ops::kConcatV2, inputs, {{"N", AttrValue::Int(count)}}));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Activate(joined, options == nullptr ? tflite::ActivationFunctionType::NONE
                                                              : options->fused_activation_function()));
  return std::vector<TensorRef>{y};
}

// The target shape is the second operand, or in the options if there is none.
Results Reshape(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  TensorRef shape;
  const auto* options = op->op().builtin_options_as<tflite::ReshapeOptions>();
  if (op->HasInput(1)) {
    PF_ASSIGN_OR_RETURN(shape, op->Input(1));
  } else if (options != nullptr && options->new_shape() != nullptr) {
    std::vector<int32_t> target = Copied(options->new_shape());
    // Old converters write a scalar as one dimension of size 0.
    if (target.size() == 1 && target[0] == 0) target.clear();
    PF_ASSIGN_OR_RETURN(shape, op->Ints(target));
  } else {
    return absl::InvalidArgumentError("has neither a shape operand nor one in its options");
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kReshape, {x, shape}));
  return std::vector<TensorRef>{y};
}

Results Squeeze(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<tflite::SqueezeOptions>();
  const std::vector<int32_t> dims = options == nullptr ? std::vector<int32_t>() : Copied(options->squeeze_dims());
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kSqueeze, {x},
                               {{"squeeze_dims", AttrValue::IntList(std::vector<int64_t>(dims.begin(), dims.end()))}}));
  return std::vector<TensorRef>{y};
}

// Pads with zero, which the zero point represents among codes.
Results Pad(OperatorImport* op) {
  if (!op->IsQuantizedOutput(0)) return Direct<ops::kPad>(op);
  PF_ASSIGN_OR_RETURN(std::vector<TensorRef> inputs, op->Inputs());
  inputs.resize(2);
  const auto* points = op->OutputTensor(0).quantization()->zero_point();
  const int64_t point = points == nullptr || points->size() == 0 ? 0 : points->Get(0);
  const CodeLimits limits = LimitsOf(op->OutputType(0));
  if (point < limits.low || point > limits.high) {
    return absl::InvalidArgumentError(
        absl::StrCat("its result has the zero point ", point, ", expected ", limits.low, " to ", limits.high));
  }
  PF_ASSIGN_OR_RETURN(inputs.emplace_back(), op->ScalarLike(inputs[0], static_cast<double>(point)));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kPadV2, inputs));
  return std::vector<TensorRef>{y};
}

Results MirrorPad(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::MirrorPadOptions>();
  const bool is_symmetric = options != nullptr && options->mode() == tflite::MirrorPadMode::SYMMETRIC;
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(ops::kMirrorPad, inputs, {{"mode", AttrValue::String(is_symmetric ? "SYMMETRIC" : "REFLECT")}}));
  return std::vector<TensorRef>{y};
}

Results Pack(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::PackOptions>();
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(ops::kPack, inputs, {{"axis", AttrValue::Int(options == nullptr ? 0 : options->axis())}}));
  return std::vector<TensorRef>{y};
}

Results Unpack(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<tflite::UnpackOptions>();
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kUnpack, {x},
                                           {{"num", AttrValue::Int(op->num_outputs())},
                                            {"axis", AttrValue::Int(options == nullptr ? 0 : options->axis())}}));
  return AllOutputs(node, op->num_outputs());
}

template <ops::OpId kOp>
Results Split(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(kOp, inputs, {{"num_split", AttrValue::Int(op->num_outputs())}}));
  return AllOutputs(node, op->num_outputs());
}

Results StridedSlice(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::StridedSliceOptions>();
  OperatorImport::Attrs attrs;
  if (options != nullptr) {
    attrs = {{"begin_mask", AttrValue::Int(options->begin_mask())},
             {"end_mask", AttrValue::Int(options->end_mask())},
             {"ellipsis_mask", AttrValue::Int(options->ellipsis_mask())},
             {"new_axis_mask", AttrValue::Int(options->new_axis_mask())},
             {"shrink_axis_mask", AttrValue::Int(options->shrink_axis_mask())}};
    // The end is relative to the start.
    if (options->offset()) {
      PF_ASSIGN_OR_RETURN(inputs[2], op->Emit(ops::kAddV2, {inputs[1], inputs[2]}));
    }
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kStridedSlice, inputs, attrs));
  return std::vector<TensorRef>{y};
}

Results Gather(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef params, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef indices, op->Input(1));
  const auto* options = op->op().builtin_options_as<tflite::GatherOptions>();
  PF_ASSIGN_OR_RETURN(const TensorRef axis,
                      op->Const(Tensor::Scalar<int32_t>(options == nullptr ? 0 : options->axis())));
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kGatherV2, {params, indices, axis},
                               {{"batch_dims", AttrValue::Int(options == nullptr ? 0 : options->batch_dims())}}));
  return std::vector<TensorRef>{y};
}

// Selects rows of a table. The ids are the first operand.
Results EmbeddingLookup(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef ids, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef table, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kGatherV2, {table, ids, axis}));
  return std::vector<TensorRef>{y};
}

Results OneHot(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::OneHotOptions>();
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(ops::kOneHot, inputs, {{"axis", AttrValue::Int(options == nullptr ? -1 : options->axis())}}));
  return std::vector<TensorRef>{y};
}

Results ShapeOperator(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kShape, {x}, {{"out_type", AttrValue::Type(op->OutputType(0))}}));
  return std::vector<TensorRef>{y};
}

Results TopK(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(std::vector<TensorRef> inputs, op->Inputs());
  if (op->InputType(1) != DType::kInt32) {
    PF_ASSIGN_OR_RETURN(inputs[1], op->Emit(ops::kCast, {inputs[1]}, {{"DstT", AttrValue::Type(DType::kInt32)}}));
  }
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kTopKV2, inputs, {{"index_type", AttrValue::Type(op->OutputType(1))}}));
  return AllOutputs(node, 2);
}

Results Unique(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kUnique, {x}, {{"out_idx", AttrValue::Type(op->OutputType(1))}}));
  return AllOutputs(node, 2);
}

Results ReverseSequence(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::ReverseSequenceOptions>();
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kReverseSequence, inputs,
                               {{"seq_dim", AttrValue::Int(options == nullptr ? 0 : options->seq_dim())},
                                {"batch_dim", AttrValue::Int(options == nullptr ? 0 : options->batch_dim())}}));
  return std::vector<TensorRef>{y};
}

Results SparseToDense(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::SparseToDenseOptions>();
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(ops::kSparseToDense, inputs,
               {{"validate_indices", AttrValue::Bool(options != nullptr && options->validate_indices())}}));
  return std::vector<TensorRef>{y};
}

template <ops::OpId kOp, typename Options>
Results Blocks(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<Options>();
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(kOp, {x}, {{"block_size", AttrValue::Int(options == nullptr ? 0 : options->block_size())}}));
  return std::vector<TensorRef>{y};
}

// Forwards the constant: a sparse constant has been expanded already.
Results Densify(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kIdentity, {x}));
  return std::vector<TensorRef>{y};
}

// Replaces a block at the start, which is clamped to the operand: start = clamp(start, 0, shape - update's shape). The
// result is a selection between operand and update, with the update padded to the operand's shape.
Results DynamicUpdateSlice(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef update, op->Input(1));
  PF_ASSIGN_OR_RETURN(TensorRef start, op->Input(2));
  if (op->InputType(2) != DType::kInt32) {
    PF_ASSIGN_OR_RETURN(start, op->Emit(ops::kCast, {start}, {{"DstT", AttrValue::Type(DType::kInt32)}}));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Emit(ops::kShape, {x}));
  PF_ASSIGN_OR_RETURN(const TensorRef size, op->Emit(ops::kShape, {update}));
  PF_ASSIGN_OR_RETURN(const TensorRef zero, op->Const(Tensor::Scalar<int32_t>(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef room, op->Emit(ops::kSub, {shape, size}));
  PF_ASSIGN_OR_RETURN(const TensorRef bounded, op->Emit(ops::kMinimum, {start, room}));
  PF_ASSIGN_OR_RETURN(const TensorRef before, op->Emit(ops::kMaximum, {bounded, zero}));
  PF_ASSIGN_OR_RETURN(const TensorRef after, op->Emit(ops::kSub, {room, before}));
  PF_ASSIGN_OR_RETURN(const TensorRef paddings, op->Emit(ops::kPack, {before, after}, {{"axis", AttrValue::Int(1)}}));
  PF_ASSIGN_OR_RETURN(const TensorRef padded, op->Emit(ops::kPad, {update, paddings}));
  PF_ASSIGN_OR_RETURN(const TensorRef yes, op->Emit(ops::kOnesLike, {update}));
  PF_ASSIGN_OR_RETURN(const TensorRef inside, op->Emit(ops::kPad, {yes, paddings}));
  PF_ASSIGN_OR_RETURN(const TensorRef mask, op->Emit(ops::kCast, {inside}, {{"DstT", AttrValue::Type(DType::kBool)}}));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kSelectV2, {mask, padded, x}));
  return std::vector<TensorRef>{y};
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::CONCATENATION, 1, 1, Concatenation, Codes::kMoved,
     Form({ops::kConcatV2, ops::kConcat}, kTakesActivation, ExportConcatenation, "", "1.5 1.14 2.3 2.14 2.21 2.23 2.23",
          "uint8 int8:2 int16:3")},
    {BuiltinOperator::RESHAPE, 1, 1, Reshape, Codes::kMoved,
     Form({ops::kReshape, ops::kExpandDims, ops::kSqueeze}, kPlain, ExportReshape, "", "1.5", "uint8 int8 int16")},
    {BuiltinOperator::SQUEEZE, 1, 1, Squeeze, Codes::kMoved,
     Form({ops::kSqueeze}, kPlain, ExportSqueeze, "", "1.6 2.5", "uint8 int8 int16")},
    {BuiltinOperator::EXPAND_DIMS, 2, 1, Direct<ops::kExpandDims>, Codes::kMoved,
     Form({ops::kExpandDims}, kPlain, ExportExpandDims, "", "1.10", "uint8 int8 int16")},
    {BuiltinOperator::TRANSPOSE, 2, 1, Direct<ops::kTranspose>, Codes::kMoved,
     Form({ops::kTranspose}, kPlain, ExportTranspose, "float int32 int64 uint8 int8:2 bool:3 int16:5 half:9",
          "1.6 1.14 1.15 2.3 2.4 2.12 2.14.4 2.22 2.23", "uint8 int8:2 int16:5")},
    {BuiltinOperator::PAD, 2, 1, Pad, Codes::kMoved,
     Form({ops::kPad, ops::kPadV2}, kPlain, ExportPad, "float int32 int64 bool:5", "1.5 1.14 2.4 2.6 2.20 2.23",
          "uint8 int8:2 int16:3")},
    {BuiltinOperator::PADV2, 3, 1, Direct<ops::kPadV2>, Codes::kMoved,
     Form({ops::kPadV2}, kPlain, ExportPad, "float int32 int64 uint8 bool:5", "1.9 1.14 2.4 2.6 2.20 2.23",
          "uint8 int8:2 int16:3")},
    {BuiltinOperator::MIRROR_PAD, 2, 1, MirrorPad, Codes::kMoved,
     Form({ops::kMirrorPad}, kPlain, ExportMirrorPad, "float int32 int64 uint8", "1.13.1 2.3 2.12",
          "uint8 int8:2 int16:3")},
    {BuiltinOperator::TILE, 2, 1, Direct<ops::kTile>, Codes::kMoved,
     Form({ops::kTile}, kPlain, ExportTile, "float int32 int64 bool uint8 string:2", "1.10.1 2.2 2.8", "uint8 int8:3")},
    {BuiltinOperator::PACK, 1, 1, Pack, Codes::kMoved,
     Form({ops::kPack}, kPlain, ExportPack, "float int32 int64 uint8 int8:2 int16:3 uint32:4",
          "1.11 1.14 2.3 2.13 2.23", "uint8 int8:2 int16:3")},
    {BuiltinOperator::UNPACK, 1, -1, Unpack, Codes::kMoved,
     Form({ops::kUnpack}, kPlain, ExportUnpack, "float int32 uint8 int8:2 bool:3 int16:4 half:5",
          "1.11 1.14 2.2 2.3 2.22 2.23", "uint8:2 int8:2 int16:4")},
    {BuiltinOperator::SPLIT, 2, -1, Split<ops::kSplit>, Codes::kMoved,
     Form({ops::kSplit}, kPlain, ExportSplit, "@1 float uint8 int8:2 int32:3 int16:4", "1.5 1.14 1.14 2.3 2.23",
          "uint8 int8:2 int16:4")},
    {BuiltinOperator::SPLIT_V, 3, -1, Split<ops::kSplitV>, Codes::kMoved,
     Form({ops::kSplitV}, kPlain, ExportSplitV, "float int16 int32 int64 uint8 int8:2", "1.13.1 2.3 2.23",
          "uint8 int8:2 int16")},
    {BuiltinOperator::SLICE, 3, 1, Direct<ops::kSlice>, Codes::kMoved,
     Form({ops::kSlice}, kPlain, ExportSlice, "float int32 int64 uint8 bool int8:2 string:3 int16:4 uint32:6 half:8",
          "1.14 1.14 1.14 2.4 2.5 2.14 2.21 2.23", "uint8 int8:2 int16:4")},
    {BuiltinOperator::STRIDED_SLICE, 4, 1, StridedSlice, Codes::kMoved,
     Form({ops::kStridedSlice}, kPlain, ExportStridedSlice,
          "float int32 int64 uint8 int8:2 bool:3 int16:4 string:5 uint32:7", "1.6 1.14 2.1 2.2 2.5 2.6 2.14 2.14",
          "uint8 int8:2 int16:4")},
    {BuiltinOperator::GATHER, 2, 1, Gather, Codes::kMoved,
     Form({ops::kGatherV2, ops::kGather}, kPlain, ExportGather, "float int32 int64 uint8 string int8:2 bool:3 int16:4",
          "1.6 1.14 1.15 2.4 2.5 2.13 2.15 2.23", "uint8 int8:2 int16:4")},
    {BuiltinOperator::GATHER_ND, 2, 1, Direct<ops::kGatherNd>, Codes::kMoved,
     Form({ops::kGatherNd}, kPlain, ExportGatherNd, "float int32 int64 uint8 int8 string:2 int16:3 bool:5",
          "1.14 2.3 2.5 2.13 2.16 2.23", "uint8 int8 int16:3")},
    {BuiltinOperator::SCATTER_ND, 3, 1, Direct<ops::kScatterNd>, Codes::kMoved,
     Form({ops::kScatterNd}, kPlain, ExportScatterNd, "@1 float int8 uint8 int32 int64 bool", "2.1", "uint8 int8")},
    {BuiltinOperator::EMBEDDING_LOOKUP, 2, 1, EmbeddingLookup, Codes::kExact},
    {BuiltinOperator::SPARSE_TO_DENSE, 4, 1, SparseToDense, Codes::kMoved},
    {BuiltinOperator::ONE_HOT, 4, 1, OneHot, Codes::kMoved,
     Form({ops::kOneHot}, kPlain, ExportOneHot, "@2 float int32 int64 bool int8 uint8", "1.11")},
    {BuiltinOperator::FILL, 2, 1, Direct<ops::kFill>, Codes::kMoved,
     Form({ops::kFill}, kPlain, ExportFill, "@1 float int32 int64 bool:2 string:2 half:4", "1.13 2.3 2.5 2.12 2.23",
          "int8:3 int16:3")},
    {BuiltinOperator::RANGE, 3, 1, Direct<ops::kRange>, Codes::kRefused,
     Form({ops::kRange}, kPlain, ExportElementwise, "float int32 int64:2", "1.13 2.14")},
    {BuiltinOperator::SHAPE, 1, 1, ShapeOperator, Codes::kMoved,
     Form({ops::kShape}, kPlain, ExportShape, "", "1.10", "uint8 int8 int16")},
    {BuiltinOperator::RANK, 1, 1, Direct<ops::kRank>, Codes::kMoved,
     Form({ops::kRank}, kPlain, ExportElementwise, "", "1.14", "uint8 int8 int16")},
    {BuiltinOperator::TOPK_V2, 2, 2, TopK, Codes::kMoved,
     Form({ops::kTopKV2}, kPlain, ExportTopK, "float uint8 int32 int64 int8:2", "1.7 1.14 2.13", "uint8 int8:2")},
    {BuiltinOperator::WHERE, 1, 1, Direct<ops::kWhere>, Codes::kMoved,
     Form({ops::kWhere}, kPlain, ExportElementwise, "bool float:2 int32:2 int64:2 int8:2 uint8:2 uint32:2",
          "1.14 2.8")},
    {BuiltinOperator::UNIQUE, 1, 2, Unique, Codes::kMoved,
     Form({ops::kUnique}, kPlain, ExportUnique, "float int8 uint8 int16 int32 int64", "1.14")},
    {BuiltinOperator::REVERSE_V2, 2, 1, Direct<ops::kReverseV2>, Codes::kMoved,
     Form({ops::kReverseV2}, kPlain, ExportReverse, "float uint8 int16 int32 int64 bool:2 int8:3", "1.14 2.2 2.5 2.23",
          "uint8 int8:3 int16:3")},
    {BuiltinOperator::REVERSE_SEQUENCE, 2, 1, ReverseSequence, Codes::kMoved,
     Form({ops::kReverseSequence}, kPlain, ExportReverseSequence, "float int32 int64", "1.14")},
    {BuiltinOperator::BROADCAST_TO, 2, 1, Direct<ops::kBroadcastTo>, Codes::kMoved,
     Form({ops::kBroadcastTo}, kPlain, ExportBroadcastTo,
          "float bool int32 int64 uint8 uint32 complex64 int8:3 int16:3", "- 2.5 2.5 2.23", "uint8:2 int8:3 int16:3")},
    {BuiltinOperator::BROADCAST_ARGS, 2, 1, Direct<ops::kBroadcastArgs>, Codes::kRefused,
     Form({ops::kBroadcastArgs}, kPlain, ExportElementwise, "int32 int64", "2.6")},
    {BuiltinOperator::MATRIX_DIAG, 1, 1, Direct<ops::kMatrixDiag>, Codes::kRefused,
     Form({ops::kMatrixDiag}, kPlain, ExportElementwise, "float int8 int16 int32 int64 uint8", "1.14")},
    {BuiltinOperator::MATRIX_SET_DIAG, 2, 1, Direct<ops::kMatrixSetDiag>, Codes::kRefused,
     Form({ops::kMatrixSetDiag}, kPlain, ExportElementwise, "float int8 int16 int32 int64 uint8", "1.14")},
    {BuiltinOperator::SPACE_TO_DEPTH, 1, 1, Blocks<ops::kSpaceToDepth, tflite::SpaceToDepthOptions>, Codes::kMoved,
     Form({ops::kSpaceToDepth}, kPlain, ExportSpaceToDepth, "float int32 int64", "1.5 1.14", "uint8 int8:2")},
    {BuiltinOperator::DEPTH_TO_SPACE, 1, 1, Blocks<ops::kDepthToSpace, tflite::DepthToSpaceOptions>, Codes::kMoved,
     Form({ops::kDepthToSpace}, kPlain, ExportDepthToSpace, "float int32 int64 uint8 int8", "2.1 2.5", "uint8 int8")},
    {BuiltinOperator::SPACE_TO_BATCH_ND, 3, 1, Direct<ops::kSpaceToBatchND>, Codes::kExact,
     Form({ops::kSpaceToBatchND}, kPlain, ExportSpaceToBatch, "float int32 int64", "1.6 1.14 2.3 2.12",
          "uint8 int8:2 int16:4")},
    {BuiltinOperator::BATCH_TO_SPACE_ND, 3, 1, Direct<ops::kBatchToSpaceND>, Codes::kMoved,
     Form({ops::kBatchToSpaceND}, kPlain, ExportSpaceToBatch, "float int32 int64 uint8 int8", "1.6 1.14 2.3 2.12",
          "uint8 int8:2 int16:4")},
    {BuiltinOperator::DENSIFY, 1, 1, Densify, Codes::kMoved},
    {BuiltinOperator::DYNAMIC_UPDATE_SLICE, 3, 1, DynamicUpdateSlice, Codes::kMoved,
     Form({ops::kTensorScatterUpdate}, kPlain, ExportDynamicUpdateSlice, "float bool int8 int32 int64 half:3 int16:4",
          "2.9 2.17 2.19 2.20 2.21 2.22")},
};

}  // namespace

absl::Span<const OperatorRow> ArrayOperators() { return kRows; }

}  // namespace permafrost

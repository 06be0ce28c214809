// Writes operators that create, move, select and reshape elements.
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_export.h"

namespace permafrost {
namespace {

// Returns Unimplemented unless the node has at least `count` data inputs.
absl::Status RequireInputs(const OperatorExport& op, int count) {
  if (op.num_inputs() >= count) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("has ", op.num_inputs(), " inputs, expected ", count));
}

int RankOf(const OperatorExport& op, TensorRef tensor) {
  const Shape shape = op.ShapeOf(tensor);
  return shape.has_rank() ? shape.rank() : 0;
}

absl::StatusOr<int32_t> AxisOf(const OperatorExport& op, TensorRef tensor) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axis, op.ConstantIntegers(tensor));
  if (axis.size() == 1 && axis[0] == static_cast<int32_t>(axis[0])) return static_cast<int32_t>(axis[0]);
  return absl::UnimplementedError(absl::StrCat("has ", axis.size(), " axes, expected one of 32 bits"));
}

absl::Status RequireNhwc(const OperatorExport& op) {
  const absl::StatusOr<std::string> format = StringAttr(op.node(), "data_format");
  if (!format.ok() || *format == "NHWC") return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("has the data_format ", *format, ", expected NHWC"));
}

}  // namespace

absl::Status ExportConcatenation(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  const bool is_axis_first = op->node().op() == ops::kConcat;
  const int axis_input = is_axis_first ? 0 : op->num_inputs() - 1;
  PF_ASSIGN_OR_RETURN(const int32_t axis, AxisOf(*op, op->input(axis_input)));
  // The type that determines the version is that of operand 0, the axis of a Concat.
  PF_ASSIGN_OR_RETURN(const DType dtype, op->TypeOf(op->input(is_axis_first ? 1 : 0)));
  if (dtype == DType::kInt8) op->RequireVersion(2);
  if (dtype == DType::kInt16) op->RequireVersion(3);
  if (dtype == DType::kUint32) op->RequireVersion(4);
  if (dtype == DType::kHalf) op->RequireVersion(6);
  for (int i = 0; i < op->num_inputs(); ++i) {
    if (i != axis_input) op->AddOperand(op->input(i));
  }
  op->SetOptions(tflite::CreateConcatenationOptions(op->builder(), axis, op->activation()));
  return absl::OkStatus();
}

absl::Status ExportReshape(OperatorExport* op) {
  if (op->node().op() == ops::kReshape) {
    PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
    op->AddOperand(op->input(0));
    op->AddIntegers(op->input(1));
    op->SetOptions(tflite::CreateReshapeOptions(op->builder()));
    return absl::OkStatus();
  }
  // ExpandDims and Squeeze to a shape with at most one unknown dimension.
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  const Shape shape = op->ShapeOf({&op->node(), 0});
  int num_unknown = 0;
  std::vector<int32_t> dims;
  for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) {
    num_unknown += shape.dim(i) < 0 ? 1 : 0;
    if (shape.dim(i) == 0 || shape.dim(i) > INT32_MAX) num_unknown = 2;  // 0 elements leave -1 open.
    dims.push_back(static_cast<int32_t>(shape.dim(i)));
  }
  if (!shape.has_rank() || num_unknown > 1) {
    return absl::UnimplementedError(
        absl::StrCat("has the shape ", shape.ToString(), ", expected at most one unknown dimension"));
  }
  op->AddOperand(op->input(0));
  const int64_t count = static_cast<int64_t>(dims.size());
  op->AddConstant(Tensor::FromVector(Shape({count}), std::move(dims)));
  op->SetOptions(tflite::CreateReshapeOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportExpandDims(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateExpandDimsOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportSqueeze(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntListAttr(op->node(), "squeeze_dims"));
  op->AddOperand(op->input(0));
  const auto vector = op->builder().CreateVector(std::vector<int32_t>(dims.begin(), dims.end()));
  op->SetOptions(tflite::CreateSqueezeOptions(op->builder(), vector));
  return absl::OkStatus();
}

absl::Status ExportTranspose(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  const int rank = RankOf(*op, op->input(0));
  if (rank == 5) op->RequireVersion(4);
  if (rank == 6) op->RequireVersion(6);
  if (rank > 6) op->RequireVersion(8);
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateTransposeOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportPad(OperatorExport* op) {
  const bool has_value = op->node().op() == ops::kPadV2;
  PF_RETURN_IF_ERROR(RequireInputs(*op, has_value ? 3 : 2));
  if (RankOf(*op, op->input(0)) > 4) op->RequireVersion(4);
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  if (has_value && op->target() == tflite::BuiltinOperator::PAD) {
    // PAD of codes fills with the zero point.
    const UniformScales* scales = op->ScalesBehind(op->input(0));
    const absl::StatusOr<double> value = op->ConstantScalar(op->input(2));
    if (scales == nullptr || !value.ok() || *value != scales->zero_points[0]) {
      return absl::UnimplementedError("expected codes that are padded with the zero point");
    }
    op->SetOptions(tflite::CreatePadOptions(op->builder()));
    return absl::OkStatus();
  }
  if (has_value) {
    op->AddOperand(op->input(2));
    op->SetOptions(tflite::CreatePadV2Options(op->builder()));
  } else {
    op->SetOptions(tflite::CreatePadOptions(op->builder()));
  }
  return absl::OkStatus();
}

absl::Status ExportMirrorPad(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  PF_ASSIGN_OR_RETURN(const std::string mode, StringAttr(op->node(), "mode"));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateMirrorPadOptions(
      op->builder(), mode == "SYMMETRIC" ? tflite::MirrorPadMode::SYMMETRIC : tflite::MirrorPadMode::REFLECT));
  return absl::OkStatus();
}

absl::Status ExportTile(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  return absl::OkStatus();
}

absl::Status ExportPack(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(op->node(), "axis"));
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreatePackOptions(op->builder(), op->num_inputs(), static_cast<int32_t>(axis)));
  return absl::OkStatus();
}

absl::Status ExportUnpack(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_ASSIGN_OR_RETURN(const int64_t num, IntAttr(op->node(), "num"));
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(op->node(), "axis"));
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreateUnpackOptions(op->builder(), static_cast<int32_t>(num), static_cast<int32_t>(axis)));
  return absl::OkStatus();
}

absl::Status ExportSplit(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  PF_ASSIGN_OR_RETURN(const int64_t num, IntAttr(op->node(), "num_split"));
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateSplitOptions(op->builder(), static_cast<int32_t>(num)));
  return absl::OkStatus();
}

absl::Status ExportSplitV(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 3));
  PF_ASSIGN_OR_RETURN(const int64_t num, IntAttr(op->node(), "num_split"));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->AddOperand(op->input(2));
  op->SetOptions(tflite::CreateSplitVOptions(op->builder(), static_cast<int32_t>(num)));
  return absl::OkStatus();
}

absl::Status ExportSlice(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 3));
  if (RankOf(*op, op->input(0)) > 4) op->RequireVersion(5);
  for (int i = 0; i < 3; ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreateSliceOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportStridedSlice(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 4));
  constexpr int kMostDims = 5;  // The limit of LiteRT's kernel.
  int32_t masks[5] = {};
  const char* const keys[5] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
  for (size_t i = 0; i < 5; ++i) {
    PF_ASSIGN_OR_RETURN(const int64_t mask, IntAttr(op->node(), keys[i]));
    masks[i] = static_cast<int32_t>(mask);
  }
  const int rank = RankOf(*op, op->input(0));
  if (rank > kMostDims) {
    return absl::UnimplementedError(absl::StrCat("slices ", rank, " dimensions, expected at most ", kMostDims));
  }
  if (rank > 4) op->RequireVersion(4);
  if (masks[2] != 0 || masks[3] != 0) op->RequireVersion(6);
  op->AddOperand(op->input(0));
  for (int i = 1; i < 4; ++i) op->AddIntegers(op->input(i));
  op->SetOptions(
      tflite::CreateStridedSliceOptions(op->builder(), masks[0], masks[1], masks[2], masks[3], masks[4], false));
  return absl::OkStatus();
}

absl::Status ExportGather(OperatorExport* op) {
  int32_t axis = 0, batch_dims = 0;
  if (op->node().op() == ops::kGatherV2) {
    PF_RETURN_IF_ERROR(RequireInputs(*op, 3));
    PF_ASSIGN_OR_RETURN(axis, AxisOf(*op, op->input(2)));
    PF_ASSIGN_OR_RETURN(const int64_t dims, IntAttr(op->node(), "batch_dims"));
    batch_dims = static_cast<int32_t>(dims);
  } else {
    PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  }
  if (batch_dims != 0) op->RequireVersion(5);
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateGatherOptions(op->builder(), axis, batch_dims));
  return absl::OkStatus();
}

absl::Status ExportGatherNd(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateGatherNdOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportScatterNd(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 3));
  op->AddIntegers(op->input(0));
  op->AddOperand(op->input(1));
  op->AddIntegers(op->input(2));
  op->SetOptions(tflite::CreateScatterNdOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportOneHot(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 4));
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(op->node(), "axis"));
  for (int i = 0; i < 4; ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreateOneHotOptions(op->builder(), static_cast<int32_t>(axis)));
  return absl::OkStatus();
}

absl::Status ExportFill(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateFillOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportShape(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "out_type"));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType type, TfliteTypeOf(dtype));
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreateShapeOptions(op->builder(), type));
  return absl::OkStatus();
}

absl::Status ExportTopK(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  PF_ASSIGN_OR_RETURN(const DType index_type, TypeAttr(op->node(), "index_type"));
  if (index_type != DType::kInt32) {
    return absl::UnimplementedError(absl::StrCat("has indices of ", DTypeName(index_type), ", expected int32"));
  }
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateTopKV2Options(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportUnique(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "out_idx"));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType type, TfliteTypeOf(dtype));
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreateUniqueOptions(op->builder(), type));
  return absl::OkStatus();
}

absl::Status ExportReverse(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateReverseV2Options(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportReverseSequence(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  PF_ASSIGN_OR_RETURN(const int64_t seq_dim, IntAttr(op->node(), "seq_dim"));
  PF_ASSIGN_OR_RETURN(const int64_t batch_dim, IntAttr(op->node(), "batch_dim"));
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateReverseSequenceOptions(op->builder(), static_cast<int32_t>(seq_dim),
                                                      static_cast<int32_t>(batch_dim)));
  return absl::OkStatus();
}

absl::Status ExportSpaceToDepth(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_RETURN_IF_ERROR(RequireNhwc(*op));
  PF_ASSIGN_OR_RETURN(const int64_t size, IntAttr(op->node(), "block_size"));
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreateSpaceToDepthOptions(op->builder(), static_cast<int32_t>(size)));
  return absl::OkStatus();
}

absl::Status ExportDepthToSpace(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 1));
  PF_RETURN_IF_ERROR(RequireNhwc(*op));
  PF_ASSIGN_OR_RETURN(const int64_t size, IntAttr(op->node(), "block_size"));
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreateDepthToSpaceOptions(op->builder(), static_cast<int32_t>(size)));
  return absl::OkStatus();
}

absl::Status ExportSpaceToBatch(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 3));
  if (RankOf(*op, op->input(0)) != 4) op->RequireVersion(3);
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->AddIntegers(op->input(2));
  return absl::OkStatus();
}

// One slice along the first dimension, as loops write their results. Other updates have no operator.
absl::Status ExportDynamicUpdateSlice(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 3));
  const Shape indices = op->ShapeOf(op->input(1)), updates = op->ShapeOf(op->input(2));
  if (!indices.has_rank() || indices.rank() != 2 || indices.dim(0) != 1 || indices.dim(1) != 1 || !updates.has_rank()) {
    return absl::UnimplementedError(absl::StrCat("updates at indices of shape ", indices.ToString(),
                                                 ", expected [1,1]: one slice along the first dimension"));
  }
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(2));
  // The number, without the shape that the index has.
  TensorRef index = op->input(1);
  if (index.node->op() == ops::kReshape && index.node->num_data_inputs() == 2) index = index.node->input(0);
  op->AddPosition(index, updates.rank());
  op->SetOptions(tflite::CreateDynamicUpdateSliceOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportBroadcastTo(OperatorExport* op) {
  PF_RETURN_IF_ERROR(RequireInputs(*op, 2));
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->RequireVersion(2);  // There is no version 1.
  return absl::OkStatus();
}

}  // namespace permafrost

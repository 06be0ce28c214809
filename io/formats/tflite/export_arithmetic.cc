// Writes elementwise operators, comparisons, reductions and selections.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/composed_functions.h"
#include "io/formats/tflite/forms.h"
#include "io/formats/tflite/operator_export.h"

namespace permafrost {
namespace {

absl::Status NoForm(absl::string_view expected) {
  return absl::UnimplementedError(absl::StrCat("expected ", expected));
}

// Returns the composed function whose last node is that of `op`, if it is `function`.
absl::StatusOr<Composition> Composed(const OperatorExport& op, ComposedFunction function) {
  CompositionContext context;
  context.is_read_once = [&op](const Node& node) { return op.IsReadOnce(node); };
  context.shape_of = [&op](TensorRef ref) { return op.ShapeOf(ref); };
  std::optional<Composition> found = MatchComposition(op.node(), context);
  if (!found.has_value() || found->function != function) return absl::UnimplementedError("expected its formula");
  return *std::move(found);
}

absl::Status AddAll(OperatorExport* op, int least) {
  if (op->num_inputs() < least) {
    return absl::UnimplementedError(absl::StrCat("has ", op->num_inputs(), " inputs, expected ", least));
  }
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  return absl::OkStatus();
}

int LargestRank(const OperatorExport& op) {
  int largest = 0;
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Shape shape = op.ShapeOf(op.input(i));
    if (shape.has_rank()) largest = std::max(largest, shape.rank());
  }
  return largest;
}

}  // namespace

absl::Status ExportElementwise(OperatorExport* op) { return AddAll(op, 1); }

absl::Status ExportBroadcast(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  if (LargestRank(*op) > 4) op->RequireVersion(3);
  return absl::OkStatus();
}

namespace {

// True if the mark of the quantised operator that `node` computes demands that operands are aligned by shifts. The mark
// is behind the node, or behind its activation.
bool AlignsByShifts(const OperatorExport& op) {
  if (!op.is_quantized()) return false;
  const Node* node = &op.node();
  for (int i = 0; i < 2; ++i) {
    for (const Use& use : node->uses()) {
      if (BoolAttr(*use.consumer, kPowersOfTwoAttr).value_or(false)) return true;
    }
    if (node->uses().size() != 1) break;
    node = node->uses()[0].consumer;
  }
  return false;
}

}  // namespace

absl::Status ExportAdd(OperatorExport* op) {
  const absl::StatusOr<std::string> format = StringAttr(op->node(), "data_format");
  if (format.ok() && *format != "NHWC") {
    return absl::UnimplementedError(absl::StrCat("has the data_format ", *format, ", expected NHWC"));
  }
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  op->SetOptions(tflite::CreateAddOptions(op->builder(), op->activation(), AlignsByShifts(*op)));
  return absl::OkStatus();
}

absl::Status ExportSub(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  if (LargestRank(*op) > 4) op->RequireVersion(3);
  op->SetOptions(tflite::CreateSubOptions(op->builder(), op->activation(), AlignsByShifts(*op)));
  return absl::OkStatus();
}

absl::Status ExportMul(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  op->SetOptions(tflite::CreateMulOptions(op->builder(), op->activation()));
  return absl::OkStatus();
}

absl::Status ExportDiv(OperatorExport* op) {
  // DIV truncates integers alone.
  if (op->node().op() == ops::kTruncateDiv) {
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "T"));
    if (dtype != DType::kInt32) return absl::UnimplementedError("truncates a quotient of floats, expected integers");
  }
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  if (LargestRank(*op) > 4) op->RequireVersion(2);
  op->SetOptions(tflite::CreateDivOptions(op->builder(), op->activation()));
  return absl::OkStatus();
}

absl::Status ExportReluN1To1(OperatorExport* op) {
  TensorRef x;
  if (!IsClamp(op->node(), -1, 1, &x)) return NoForm("a clamp to -1 and 1");
  op->AddOperand(x);
  return absl::OkStatus();
}

absl::Status ExportRelu0To1(OperatorExport* op) {
  TensorRef x;
  if (!IsClamp(op->node(), 0, 1, &x)) return NoForm("a clamp to 0 and 1");
  op->AddOperand(x);
  return absl::OkStatus();
}

absl::Status ExportLeakyRelu(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const float alpha, FloatAttr(op->node(), "alpha"));
  op->SetOptions(tflite::CreateLeakyReluOptions(op->builder(), alpha));
  return absl::OkStatus();
}

absl::Status ExportPRelu(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const Composition found, Composed(*op, ComposedFunction::kPRelu));
  op->AddOperand(found.x);
  if (found.slope_value.dtype() == DType::kInvalid) {
    op->AddOperand(found.slope);
    return absl::OkStatus();
  }
  std::vector<float> alpha;
  for (size_t i = 0; i < found.slope_value.elements<float>().size(); ++i) {
    alpha.push_back(found.slope_factor * found.slope_value.elements<float>()[i]);
  }
  op->AddConstant(Tensor::FromVector(found.slope_value.shape(), std::move(alpha)));
  return absl::OkStatus();
}

absl::Status ExportHardSwish(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const Composition found, Composed(*op, ComposedFunction::kHardSwish));
  op->AddOperand(found.x);
  return absl::OkStatus();
}

absl::Status ExportGelu(OperatorExport* op) {
  absl::StatusOr<Composition> found = Composed(*op, ComposedFunction::kGelu);
  const bool is_approximate = !found.ok();
  if (is_approximate) found = Composed(*op, ComposedFunction::kGeluApproximate);
  PF_RETURN_IF_ERROR(found.status());
  op->AddOperand(found->x);
  op->SetOptions(tflite::CreateGeluOptions(op->builder(), is_approximate));
  return absl::OkStatus();
}

absl::Status ExportL2Normalization(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const Composition found, Composed(*op, ComposedFunction::kL2Normalization));
  op->AddOperand(found.x);
  op->SetOptions(tflite::CreateL2NormOptions(op->builder(), op->activation()));
  return absl::OkStatus();
}

absl::Status ExportReduction(OperatorExport* op) {
  if (op->num_inputs() < 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const bool keep_dims, BoolAttr(op->node(), "keep_dims"));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateReducerOptions(op->builder(), keep_dims));
  return absl::OkStatus();
}

absl::Status ExportArgMax(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "output_type"));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType type, TfliteTypeOf(dtype));
  op->SetOptions(tflite::CreateArgMaxOptions(op->builder(), type));
  return absl::OkStatus();
}

absl::Status ExportArgMin(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 2));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(op->node(), "output_type"));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType type, TfliteTypeOf(dtype));
  op->SetOptions(tflite::CreateArgMinOptions(op->builder(), type));
  return absl::OkStatus();
}

absl::Status ExportCast(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const DType from, TypeAttr(op->node(), "SrcT"));
  PF_ASSIGN_OR_RETURN(const DType to, TypeAttr(op->node(), "DstT"));
  // DEQUANTIZE is the form of weights of half that runtimes expect.
  if (from == DType::kHalf && to == DType::kFloat && op->Constant(op->input(0)).ok()) {
    return NoForm("no conversion of a constant of half");
  }
  PF_RETURN_IF_ERROR(op->RequireVersionFor(to));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType from_type, TfliteTypeOf(from));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType to_type, TfliteTypeOf(to));
  op->SetOptions(tflite::CreateCastOptions(op->builder(), from_type, to_type));
  return absl::OkStatus();
}

absl::Status ExportDequantize(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const DType to, TypeAttr(op->node(), "DstT"));
  if (to != DType::kFloat) return NoForm("a conversion to float");
  op->SetOptions(tflite::CreateDequantizeOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportFakeQuant(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const float least, FloatAttr(op->node(), "min"));
  PF_ASSIGN_OR_RETURN(const float most, FloatAttr(op->node(), "max"));
  PF_ASSIGN_OR_RETURN(const int64_t num_bits, IntAttr(op->node(), "num_bits"));
  PF_ASSIGN_OR_RETURN(const bool narrow_range, BoolAttr(op->node(), "narrow_range"));
  if (narrow_range) op->RequireVersion(2);
  op->SetOptions(
      tflite::CreateFakeQuantOptions(op->builder(), least, most, static_cast<int32_t>(num_bits), narrow_range));
  return absl::OkStatus();
}

absl::Status ExportCumsum(OperatorExport* op) {
  if (op->num_inputs() < 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const bool exclusive, BoolAttr(op->node(), "exclusive"));
  PF_ASSIGN_OR_RETURN(const bool reverse, BoolAttr(op->node(), "reverse"));
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateCumsumOptions(op->builder(), exclusive, reverse));
  return absl::OkStatus();
}

absl::Status ExportBucketize(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<float> boundaries, FloatListAttr(op->node(), "boundaries"));
  op->SetOptions(tflite::CreateBucketizeOptions(op->builder(), op->builder().CreateVector(boundaries)));
  return absl::OkStatus();
}

absl::Status ExportSelect(OperatorExport* op) {
  PF_RETURN_IF_ERROR(AddAll(op, 3));
  const Shape condition = op->ShapeOf(op->input(0)), x = op->ShapeOf(op->input(1));
  const bool is_row = condition.has_rank() && x.has_rank() && condition.rank() == 1 && x.rank() > 1;
  if (op->target() == tflite::BuiltinOperator::SELECT) {
    // SELECT has no condition of one value; SELECT_V2 broadcasts one.
    if (!is_row) return NoForm("a condition with one value for each row");
    if (x.rank() > 4) op->RequireVersion(3);
  } else if (op->node().op() == ops::kSelect && (is_row || !condition.has_rank() || !x.has_rank())) {
    return NoForm("a condition that broadcasts");
  }
  return absl::OkStatus();
}

absl::Status ExportSegments(OperatorExport* op) {
  if (op->num_inputs() < 2) return NoForm("two inputs");
  op->AddOperand(op->input(0));
  for (int i = 1; i < op->num_inputs(); ++i) op->AddIntegers(op->input(i));
  return absl::OkStatus();
}

}  // namespace permafrost

// Operators on volumes that other operators do not share code with: CONV_3D_TRANSPOSE.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

// Operands: the shape of the result, the filter in DHWOI, as TensorFlow has it, the input and optionally a bias.
Results Conv3DTranspose(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::Conv3DOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef filter, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(2));
  const absl::string_view padding = options->padding() == tflite::Padding::SAME ? "SAME" : "VALID";
  PF_ASSIGN_OR_RETURN(
      TensorRef y,
      op->Emit(ops::kConv3DBackpropInputV2, {shape, filter, x},
               {{"strides", AttrValue::IntList({1, options->stride_d(), options->stride_h(), options->stride_w(), 1})},
                {"padding", AttrValue::String(padding)},
                {"dilations", AttrValue::IntList({1, options->dilation_d_factor(), options->dilation_h_factor(),
                                                  options->dilation_w_factor(), 1})}}));
  if (op->HasInput(3)) {
    PF_ASSIGN_OR_RETURN(const TensorRef bias, op->Input(3));
    PF_ASSIGN_OR_RETURN(y, op->Emit(ops::kAddV2, {y, bias}));
  }
  PF_ASSIGN_OR_RETURN(y, op->Activate(y, options->fused_activation_function()));
  return std::vector<TensorRef>{y};
}

absl::Status ExportConv3DTranspose(OperatorExport* op) {
  if (op->num_inputs() != 3) return absl::UnimplementedError("has not three inputs");
  const Node& node = op->node();
  if (StringAttr(node, "data_format").value_or("NDHWC") != "NDHWC") {
    return absl::UnimplementedError("has another data_format, expected NDHWC");
  }
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(node, "padding"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntListAttr(node, "strides"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, IntListAttr(node, "dilations"));
  if (strides.size() != 5 || dilations.size() != 5 || (padding != "SAME" && padding != "VALID")) {
    return absl::UnimplementedError("has not five strides and dilations, and the padding SAME or VALID");
  }
  op->AddIntegers(op->input(0));
  op->AddOperand(op->input(1));
  op->AddOperand(op->input(2));
  const auto at = [](const std::vector<int64_t>& values, size_t i) { return static_cast<int32_t>(values[i]); };
  op->SetOptions(tflite::CreateConv3DOptions(
      op->builder(), padding == "SAME" ? tflite::Padding::SAME : tflite::Padding::VALID, at(strides, 1), at(strides, 3),
      at(strides, 2), tflite::ActivationFunctionType::NONE, at(dilations, 1), at(dilations, 3), at(dilations, 2)));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::CONV_3D_TRANSPOSE, 3, 1, Conv3DTranspose, Codes::kRefused,
     Form({ops::kConv3DBackpropInputV2}, kPlain, ExportConv3DTranspose, "@1 float", "2.6")},
};

}  // namespace

absl::Span<const OperatorRow> VolumeOperators() { return kRows; }

}  // namespace permafrost

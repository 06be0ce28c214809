// Reads the attributes of integer nodes.
#include "runtime_check/kernels/integer_operator.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/matrix_pairs.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {

absl::StatusOr<CodeType> CodeTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return CodeType::kInt8;
    case DType::kUint8:
      return CodeType::kUint8;
    case DType::kInt16:
      return CodeType::kInt16;
    case DType::kInt32:
      return CodeType::kInt32;
    default:
      return absl::UnimplementedError(
          absl::StrCat("no integer kernel for codes of type ", DTypeName(dtype), ", expected int8, uint8 or int16"));
  }
}

absl::Status RequireInputs(const PrepareContext& context, int least, int most) {
  if (context.num_inputs() >= least && context.num_inputs() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", context.num_inputs(), " inputs, expected ", least,
                                                 least == most ? "" : absl::StrCat(" to ", most)));
}

absl::StatusOr<Affine> InputAffine(const PrepareContext& context, int i) {
  Affine result;
  PF_ASSIGN_OR_RETURN(result.type, CodeTypeOf(context.input_type(i)));
  PF_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatListAttr(context.node(), "input_scales"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> points, IntListAttr(context.node(), "input_zero_points"));
  const auto index = static_cast<size_t>(i);
  if (index >= scales.size() || index >= points.size()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", scales.size(), " scales and ", points.size(),
                                                   " zero points of inputs, expected at least ", i + 1));
  }
  result.scale = scales[index];
  result.zero_point = static_cast<int32_t>(points[index]);
  if (result.zero_point != points[index]) {
    return absl::InvalidArgumentError(absl::StrCat("the zero point ", points[index], " exceeds 32 bits"));
  }
  PF_RETURN_IF_ERROR(CheckAffine(result, "input"));
  return result;
}

absl::StatusOr<Affine> OutputAffine(const PrepareContext& context) {
  Affine result;
  PF_ASSIGN_OR_RETURN(result.type, CodeTypeOf(context.output_type(0)));
  PF_ASSIGN_OR_RETURN(result.scale, FloatAttr(context.node(), "output_scale"));
  PF_ASSIGN_OR_RETURN(const int64_t point, IntAttr(context.node(), "output_zero_point"));
  result.zero_point = static_cast<int32_t>(point);
  if (result.zero_point != point) {
    return absl::InvalidArgumentError(absl::StrCat("the zero point ", point, " exceeds 32 bits"));
  }
  PF_RETURN_IF_ERROR(CheckAffine(result, "output"));
  return result;
}

absl::StatusOr<FusedActivation> ReadActivation(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string name, StringAttr(node, "activation"));
  if (name == "NONE") return FusedActivation::kNone;
  if (name == "RELU") return FusedActivation::kRelu;
  if (name == "RELU6") return FusedActivation::kRelu6;
  if (name == "RELU_N1_TO_1") return FusedActivation::kReluN1To1;
  return absl::InvalidArgumentError(
      absl::StrCat("attr 'activation' is '", name, "', expected NONE, RELU, RELU6 or RELU_N1_TO_1"));
}

absl::StatusOr<Rounding> ReadRounding(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string name, StringAttr(node, "rounding"));
  if (name == "twice") return Rounding::kTwice;
  if (name == "once") return Rounding::kOnce;
  if (name == "exact") return Rounding::kExact;
  return absl::InvalidArgumentError(absl::StrCat("attr 'rounding' is '", name, "', expected twice, once or exact"));
}

absl::StatusOr<IntegerMatrixProduct::Sizes> PrepareMatrixPairs(PrepareContext* context,
                                                               std::vector<std::pair<int64_t, int64_t>>* products) {
  const Shape &a = context->input_shape(0), &b = context->input_shape(1);
  if (a.rank() < 2 || b.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("found inputs of shape ", a.ToString(), " and ", b.ToString(), ", expected rank 2 or more"));
  }
  IntegerMatrixProduct::Sizes sizes;
  PF_ASSIGN_OR_RETURN(sizes.transpose_left, BoolAttr(context->node(), "adj_x"));
  PF_ASSIGN_OR_RETURN(sizes.transpose_right, BoolAttr(context->node(), "adj_y"));
  sizes.rows = a.dim(a.rank() - (sizes.transpose_left ? 1 : 2));
  sizes.depth = a.dim(a.rank() - (sizes.transpose_left ? 2 : 1));
  sizes.columns = b.dim(b.rank() - (sizes.transpose_right ? 2 : 1));
  if (b.dim(b.rank() - (sizes.transpose_right ? 1 : 2)) != sizes.depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("the inner sizes of ", a.ToString(), " and ", b.ToString(), " differ"));
  }
  // Checks the shape before building the list, since the length of the list depends on the output.
  PF_ASSIGN_OR_RETURN(Shape output, BroadcastShapes(Shape(a.dims().subspan(0, a.rank() - 2)),
                                                    Shape(b.dims().subspan(0, b.rank() - 2))));
  output.AddDim(sizes.rows);
  output.AddDim(sizes.columns);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  if (output.num_elements() > 0) PF_RETURN_IF_ERROR(PairMatrices(a, b, products).status());
  return sizes;
}

}  // namespace permafrost

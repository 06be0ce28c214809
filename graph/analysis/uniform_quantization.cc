// Reads the constants of UniformQuantize and UniformDequantize nodes.
#include "graph/analysis/uniform_quantization.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

absl::StatusOr<Tensor> ConstInput(const Node& node, int i, absl::string_view role, DType dtype) {
  if (node.num_data_inputs() <= i || node.input(i).node->op() != ops::kConst) {
    return absl::InvalidArgumentError(absl::StrCat(role, " are not constant"));
  }
  PF_ASSIGN_OR_RETURN(Tensor value, ConstValue(*node.input(i).node));
  if (value.dtype() != dtype || value.shape().rank() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(role, " are ", DTypeName(value.dtype()), " ",
                                                   value.shape().ToString(), ", expected a vector of ",
                                                   DTypeName(dtype)));
  }
  return value;
}

}  // namespace

absl::StatusOr<UniformScales> ReadUniformScales(const Node& node) {
  PF_ASSIGN_OR_RETURN(const Tensor scales, ConstInput(node, 1, "scales", DType::kFloat));
  PF_ASSIGN_OR_RETURN(const Tensor zero_points, ConstInput(node, 2, "zero points", DType::kInt32));
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(node, "quantization_axis"));
  UniformScales result;
  const int64_t count = scales.num_elements();
  if (count < 1 || zero_points.num_elements() != count || (axis < 0 && count != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", count, " scales and ", zero_points.num_elements(), " zero points for axis ", axis));
  }
  result.axis = static_cast<int>(axis);
  // Without these attributes, the op has no default for them, and the codes have the full range of their type.
  constexpr int64_t kLowest = -8, kHighest = 7;
  const absl::StatusOr<int64_t> lowest = IntAttr(node, "quantization_min_val");
  const absl::StatusOr<int64_t> highest = IntAttr(node, "quantization_max_val");
  result.has_four_bits = lowest.ok() && highest.ok() && *lowest >= kLowest && *highest <= kHighest;
  for (int64_t i = 0; i < count; ++i) {
    result.scales.push_back(scales.elements<float>()[static_cast<size_t>(i)]);
    result.zero_points.push_back(zero_points.elements<int32_t>()[static_cast<size_t>(i)]);
    if (!(result.scales.back() > 0) || !std::isfinite(result.scales.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("scale ", i, " is ", result.scales.back(), ", expected a positive finite number"));
    }
  }
  return result;
}

}  // namespace permafrost

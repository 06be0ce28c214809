// Finds float constants without reading their elements.
#include "transforms/rewrites/float_constants.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {

absl::StatusOr<std::optional<int64_t>> FloatConstantSize(const Node& node) {
  if (node.op() != ops::kConst) return std::nullopt;
  const AttrValue* value = node.FindAttr("value");
  if (value == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": attr 'value' is missing"));
  }
  DType dtype;
  Shape shape;
  PF_RETURN_IF_ERROR(Annotate(value->TensorTypeAndShape(&dtype, &shape), node.Describe()));
  if (dtype != DType::kFloat || !shape.IsFullyKnown()) return std::nullopt;
  PF_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  return elements;
}

}  // namespace permafrost

// Shape functions of ops whose output shape is an attribute, a value or fixed.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

// Up to this version of GraphDef, a Placeholder without dimensions has an unknown shape.
constexpr uint64_t kLastVersionWithoutScalars = 21;

// Returns VersionDef.producer of the graph, or 0 if it is not set. The graph keeps versions in wire format.
uint64_t ProducerVersion(const Graph& graph) {
  constexpr uint32_t kProducerField = 1;
  uint64_t producer = 0;
  WireReader versions(graph.versions());
  WireField version;
  while (versions.Next(&version)) {
    WireReader reader(version.bytes);
    WireField field;
    while (reader.Next(&field)) {
      if (field.number == kProducerField && field.type == WireType::kVarint) producer = field.value;
    }
  }
  return producer;
}

}  // namespace

absl::Status ConstShape(ShapeContext* context) {
  const AttrValue* value = context->node().FindAttr("value");
  if (value == nullptr) return absl::InvalidArgumentError("attr 'value' is missing");
  DType dtype;
  Shape shape;
  PF_RETURN_IF_ERROR(Annotate(value->TensorTypeAndShape(&dtype, &shape), "attr 'value'"));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeAttrShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeAttr(context->node(), "shape"));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status PlaceholderShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(ShapeAttrShape(context));
  const bool is_scalar = context->outputs()[0] == Shape();
  if (is_scalar && ProducerVersion(context->node().graph()) <= kLastVersionWithoutScalars) {
    context->set_output(0, Shape::UnknownRank());
  }
  return absl::OkStatus();
}

absl::Status PlaceholderWithDefaultShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeAttr(context->node(), "shape"));
  const absl::StatusOr<Shape> merged = MergeShapes(shape, context->input(0));
  if (!merged.ok()) return Annotate(merged.status(), "attr 'shape' and the default value");
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ScalarShape(ShapeContext* context) {
  context->set_output(0, Shape());
  return absl::OkStatus();
}

absl::Status ScalarShapes(ShapeContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, Shape());
  return absl::OkStatus();
}

absl::Status ShapeFromFirstInput(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromInput(*context, 0));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeFromSecondInput(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromInput(*context, 1));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status RangeShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> start, KnownScalar(*context, 0));
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> limit, KnownScalar(*context, 1));
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> delta, KnownScalar(*context, 2));
  context->set_output(0, Shape({kUnknownDim}));
  if (!start || !limit || !delta) return absl::OkStatus();
  if (*delta == 0 || (*delta > 0 ? *start > *limit : *start < *limit)) {
    return absl::InvalidArgumentError(absl::StrCat("found start ", *start, ", limit ", *limit, " and delta ", *delta,
                                                   ", expected a delta that leads from start to limit"));
  }
  // The distance between two int64 values fits into uint64.
  const uint64_t distance = *delta > 0 ? static_cast<uint64_t>(*limit) - static_cast<uint64_t>(*start)
                                       : static_cast<uint64_t>(*start) - static_cast<uint64_t>(*limit);
  const uint64_t step = *delta > 0 ? static_cast<uint64_t>(*delta) : 0 - static_cast<uint64_t>(*delta);
  const uint64_t count = distance / step + (distance % step != 0 ? 1 : 0);
  if (count > static_cast<uint64_t>(INT64_MAX)) {
    return absl::InvalidArgumentError(absl::StrCat("the range has ", count, " elements, expected at most 2^63 - 1"));
  }
  context->set_output(0, Shape({static_cast<int64_t>(count)}));
  return absl::OkStatus();
}

absl::Status LinSpaceShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> count, KnownScalar(*context, 2));
  if (count && *count < 1) {
    return absl::InvalidArgumentError(absl::StrCat("input 2 specifies ", *count, " elements, expected 1 or more"));
  }
  context->set_output(0, Shape({count.value_or(kUnknownDim)}));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes

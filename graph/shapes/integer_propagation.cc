// Implements the propagation of small integer tensors, with one function for each group of ops.
#include "graph/shapes/integer_propagation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/ops/op_schema.h"
#include "graph/shapes/strided_slice.h"
#include "graph/tensor.h"

namespace permafrost {
namespace {

constexpr int64_t kUnknown = KnownIntegers::kUnknown;

// The known outputs of a node in port order. May be shorter if the last outputs are unknown.
using Outputs = std::vector<std::optional<KnownIntegers>>;

Outputs One(KnownIntegers value) {
  Outputs outputs;
  outputs.emplace_back(std::move(value));
  return outputs;
}

bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Returns the integer type that an attribute holds, or nothing.
std::optional<DType> IntegerAttr(const Node& node, absl::string_view attr) {
  const AttrValue* value = node.FindAttr(attr);
  if (value == nullptr) value = DefaultAttr(node.op(), attr);
  if (value == nullptr) return std::nullopt;
  const absl::StatusOr<DType> dtype = value->AsType();
  if (!dtype.ok() || !IsInteger(*dtype)) return std::nullopt;
  return *dtype;
}

// Makes elements that overflow the type unknown. They would wrap around, which no shape relies on.
void DropOverflows(DType dtype, std::vector<int64_t>* elements) {
  if (dtype != DType::kInt32) return;
  for (int64_t& element : *elements) {
    if (element < INT32_MIN || element > INT32_MAX) element = kUnknown;
  }
}

// Returns the number of elements of a shape if it is fully known and small, or nothing.
std::optional<size_t> SmallCount(const Shape& shape) {
  if (!shape.IsFullyKnown()) return std::nullopt;
  const absl::StatusOr<int64_t> count = shape.CheckedNumElements();
  if (!count.ok() || *count > kMostPropagatedElements) return std::nullopt;
  return static_cast<size_t>(*count);
}

Outputs OfConst(const Node& node, const Shape& shape) {
  if (!IntegerAttr(node, "dtype") || !SmallCount(shape)) return {};
  const absl::StatusOr<Tensor> tensor = ConstValue(node);
  if (!tensor.ok()) return {};
  absl::StatusOr<std::vector<int64_t>> elements = IntegerValues(*tensor);
  if (!elements.ok()) return {};
  return One({shape, *std::move(elements)});
}

Outputs OfShape(const ShapeContext& context) {
  const std::optional<DType> dtype = IntegerAttr(context.node(), "out_type");
  Outputs outputs;
  if (!dtype) return outputs;
  for (int i = 0; i < context.num_outputs(); ++i) {
    const Shape& input = context.input(i);
    outputs.emplace_back();
    if (!input.has_rank()) continue;
    std::vector<int64_t> elements;
    for (const int64_t dim : input.dims()) elements.push_back(dim < 0 ? kUnknown : dim);
    DropOverflows(*dtype, &elements);
    outputs.back() = KnownIntegers{Shape({input.rank()}), std::move(elements)};
  }
  return outputs;
}

Outputs OfRank(const ShapeContext& context) {
  if (!context.input(0).has_rank()) return {};
  return One({Shape(), {context.input(0).rank()}});
}

Outputs OfSize(const ShapeContext& context) {
  const std::optional<DType> dtype = IntegerAttr(context.node(), "out_type");
  if (!dtype || !context.input(0).IsFullyKnown()) return {};
  const absl::StatusOr<int64_t> count = context.input(0).CheckedNumElements();
  if (!count.ok()) return {};
  std::vector<int64_t> elements = {*count};
  DropOverflows(*dtype, &elements);
  return One({Shape(), std::move(elements)});
}

// Keeps the elements and takes the inferred shape: Reshape, Squeeze, ExpandDims, Identity.
Outputs OfSameElements(const ShapeContext& context) {
  const KnownIntegers* input = context.integers(0);
  const Shape& shape = context.outputs()[0];
  const std::optional<size_t> count = SmallCount(shape);
  if (input == nullptr || !count || *count != input->elements.size()) return {};
  return One({shape, input->elements});
}

Outputs OfCast(const ShapeContext& context) {
  const std::optional<DType> dtype = IntegerAttr(context.node(), "DstT");
  if (!dtype) return {};
  Outputs outputs = OfSameElements(context);
  if (!outputs.empty()) DropOverflows(*dtype, &outputs[0]->elements);
  return outputs;
}

std::optional<int64_t> Apply(Op op, int64_t a, int64_t b) {
  int64_t result;
  if (op == ops::kAdd || op == ops::kAddV2) {
    if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
    return result;
  }
  if (op == ops::kSub) {
    if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
    return result;
  }
  if (op == ops::kMul) {
    if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
    return result;
  }
  if (op == ops::kMaximum) return std::max(a, b);
  if (op == ops::kMinimum) return std::min(a, b);
  // Only INT64_MIN / -1 could overflow, and INT64_MIN represents an unknown element.
  if (b == 0) return std::nullopt;
  const int64_t quotient = a / b, remainder = a % b;
  const bool rounds_down = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == ops::kFloorDiv) return rounds_down ? quotient - 1 : quotient;
  if (op == ops::kFloorMod) return rounds_down ? remainder + b : remainder;
  return quotient;  // Div and TruncateDiv.
}

// Computes elementwise arithmetic on operands of equal shape, or where one operand has a single element.
Outputs OfArithmetic(const ShapeContext& context) {
  const KnownIntegers *a = context.integers(0), *b = context.integers(1);
  const Shape& shape = context.outputs()[0];
  const std::optional<size_t> count = SmallCount(shape);
  const std::optional<DType> dtype = IntegerAttr(context.node(), "T");
  if (a == nullptr || b == nullptr || !count || !dtype) return {};
  const size_t step_a = a->elements.size() == 1 ? 0 : 1, step_b = b->elements.size() == 1 ? 0 : 1;
  if ((step_a == 1 && a->elements.size() != *count) || (step_b == 1 && b->elements.size() != *count)) return {};
  std::vector<int64_t> elements(*count, kUnknown);
  for (size_t i = 0; i < *count; ++i) {
    const int64_t x = a->elements[i * step_a], y = b->elements[i * step_b];
    if (x != kUnknown && y != kUnknown) elements[i] = Apply(context.node().op(), x, y).value_or(kUnknown);
  }
  DropOverflows(*dtype, &elements);
  return One({shape, std::move(elements)});
}

Outputs OfNeg(const ShapeContext& context) {
  const std::optional<DType> dtype = IntegerAttr(context.node(), "T");
  Outputs outputs = OfSameElements(context);
  if (!dtype || outputs.empty()) return {};
  for (int64_t& element : outputs[0]->elements) {
    if (element != kUnknown) element = -element;
  }
  DropOverflows(*dtype, &outputs[0]->elements);
  return outputs;
}

// Packs scalars into a vector. Unknown inputs become unknown elements.
Outputs OfPack(const ShapeContext& context) {
  const std::optional<size_t> count = SmallCount(context.outputs()[0]);
  if (!count || !IntegerAttr(context.node(), "T") || context.outputs()[0].rank() != 1) return {};
  std::vector<int64_t> elements;
  bool any = false;
  for (int i = 0; i < context.num_inputs(); ++i) {
    const KnownIntegers* input = context.integers(i);
    any = any || input != nullptr;
    elements.push_back(input == nullptr || input->elements.empty() ? kUnknown : input->elements[0]);
  }
  if (!any || elements.size() != *count) return {};
  return One({context.outputs()[0], std::move(elements)});
}

// Concatenates vectors. An unknown vector becomes unknown elements.
Outputs OfConcat(const ShapeContext& context, int first, int last) {
  const Shape& shape = context.outputs()[0];
  const std::optional<size_t> count = SmallCount(shape);
  if (!count || shape.rank() != 1 || !IntegerAttr(context.node(), "T")) return {};
  std::vector<int64_t> elements;
  for (int i = first; i < last; ++i) {
    const KnownIntegers* input = context.integers(i);
    if (input != nullptr) {
      elements.insert(elements.end(), input->elements.begin(), input->elements.end());
    } else if (const std::optional<size_t> gap = SmallCount(context.input(i)); gap) {
      elements.insert(elements.end(), *gap, kUnknown);
    } else {
      return {};
    }
  }
  if (elements.size() != *count) return {};
  return One({shape, std::move(elements)});
}

// Slices a vector, or a scalar if the slice only adds new axes.
Outputs OfStridedSlice(const ShapeContext& context) {
  const KnownIntegers* input = context.integers(0);
  const std::optional<size_t> count = SmallCount(context.outputs()[0]);
  const Shape& begin = context.input(1);
  if (input == nullptr || !count || input->shape.rank() != 1 || !begin.IsFullyKnown() || begin.rank() != 1) return {};
  const absl::StatusOr<shapes::StridedSliceMasks> masks = shapes::ReadStridedSliceMasks(context.node());
  if (!masks.ok()) return {};
  const absl::StatusOr<shapes::StridedSlicePlan> plan = shapes::PlanStridedSlice(
      input->shape, begin.dim(0), *masks, context.integers(1), context.integers(2), context.integers(3));
  if (!plan.ok()) return {};
  std::vector<int64_t> elements;
  for (const shapes::SlicedDimension& dimension : *plan) {
    if (dimension.kind == shapes::SlicedDimension::Kind::kNew) continue;
    if (dimension.count < 0 || dimension.begin == kUnknown) return {};
    int64_t at = dimension.begin;
    for (int64_t i = 0; i < dimension.count; ++i) {
      if (at < 0 || at >= static_cast<int64_t>(input->elements.size())) return {};
      elements.push_back(input->elements[at]);
      if (i + 1 < dimension.count) at += dimension.stride;  // Stays within the vector as long as another step follows.
    }
  }
  if (elements.size() != *count) return {};
  return One({context.outputs()[0], std::move(elements)});
}

Outputs OfSlice(const ShapeContext& context) {
  const KnownIntegers *input = context.integers(0), *begin = context.integers(1);
  const std::optional<size_t> count = SmallCount(context.outputs()[0]);
  if (input == nullptr || begin == nullptr || !count) return {};
  if (input->shape.rank() != 1 || begin->elements.size() != 1) return {};
  const int64_t from = begin->elements[0];
  if (from < 0 || static_cast<size_t>(from) > input->elements.size()) return {};
  if (*count > input->elements.size() - static_cast<size_t>(from)) return {};
  const auto start = input->elements.begin() + from;
  return One({context.outputs()[0], std::vector<int64_t>(start, start + *count)});
}

Outputs OfGather(const ShapeContext& context) {
  const KnownIntegers *params = context.integers(0), *indices = context.integers(1);
  const std::optional<size_t> count = SmallCount(context.outputs()[0]);
  if (params == nullptr || indices == nullptr || !count || params->shape.rank() != 1) return {};
  if (*count != indices->elements.size()) return {};
  std::vector<int64_t> elements;
  for (const int64_t index : indices->elements) {
    const bool known = index >= 0 && index < static_cast<int64_t>(params->elements.size());
    elements.push_back(known ? params->elements[index] : kUnknown);
  }
  return One({context.outputs()[0], std::move(elements)});
}

Outputs OfRange(const ShapeContext& context) {
  const std::optional<size_t> count = SmallCount(context.outputs()[0]);
  const KnownIntegers *start = context.integers(0), *delta = context.integers(2);
  for (const KnownIntegers* scalar : {start, delta}) {
    if (scalar == nullptr || scalar->elements.size() != 1 || !scalar->AllKnown()) return {};
  }
  if (!count) return {};
  std::vector<int64_t> elements;
  int64_t at = start->elements[0];
  for (size_t i = 0; i < *count; ++i) {
    elements.push_back(at);
    if (i + 1 < *count && __builtin_add_overflow(at, delta->elements[0], &at)) return {};
  }
  return One({context.outputs()[0], std::move(elements)});
}

Outputs OfFill(const ShapeContext& context) {
  const std::optional<size_t> count = SmallCount(context.outputs()[0]);
  const KnownIntegers* value = context.integers(1);
  if (!count || value == nullptr || value->elements.size() != 1) return {};
  return One({context.outputs()[0], std::vector<int64_t>(*count, value->elements[0])});
}

// Splits a vector into consecutive pieces: Split, SplitV and Unpack.
Outputs OfPieces(const ShapeContext& context, int data_input) {
  const KnownIntegers* input = context.integers(data_input);
  Outputs outputs;
  if (input == nullptr || input->shape.rank() != 1) return outputs;
  size_t at = 0;
  for (int i = 0; i < context.num_outputs(); ++i) {
    const Shape& shape = context.outputs()[i];
    const std::optional<size_t> count = SmallCount(shape);
    if (!count || *count > input->elements.size() - at) return outputs;
    const auto start = input->elements.begin() + static_cast<int64_t>(at);
    outputs.emplace_back(KnownIntegers{shape, std::vector<int64_t>(start, start + static_cast<int64_t>(*count))});
    at += *count;
  }
  return outputs;
}

// Reduces a vector to a scalar.
Outputs OfReduction(const ShapeContext& context) {
  const KnownIntegers* input = context.integers(0);
  const std::optional<DType> dtype = IntegerAttr(context.node(), "T");
  const Shape& shape = context.outputs()[0];
  if (input == nullptr || !dtype || input->shape.rank() != 1 || SmallCount(shape) != size_t{1}) return {};
  if (input->elements.empty() || !input->AllKnown()) return {};
  // Without axes nothing is reduced; a vector of one element is then its own sum.
  const Op op = context.node().op();
  const Op step = op == ops::kProd  ? ops::kMul
                  : op == ops::kSum ? ops::kAdd
                  : op == ops::kMax ? ops::kMaximum
                                    : ops::kMinimum;
  std::optional<int64_t> result = input->elements[0];
  for (size_t i = 1; i < input->elements.size() && result; ++i) result = Apply(step, *result, input->elements[i]);
  std::vector<int64_t> elements = {result.value_or(kUnknown)};
  DropOverflows(*dtype, &elements);
  return One({shape, std::move(elements)});
}

Outputs Compute(const ShapeContext& context) {
  switch (context.node().op().id()) {
    case ops::kConst:
      return OfConst(context.node(), context.outputs()[0]);
    case ops::kShape:
    case ops::kShapeN:
      return OfShape(context);
    case ops::kRank:
      return OfRank(context);
    case ops::kSize:
      return OfSize(context);
    case ops::kIdentity:
    case ops::kStopGradient:
    case ops::kSnapshot:
    case ops::kPreventGradient:
    case ops::kEnsureShape:
    case ops::kReshape:
    case ops::kSqueeze:
    case ops::kExpandDims:
      return OfSameElements(context);
    case ops::kCast:
      return OfCast(context);
    case ops::kAdd:
    case ops::kAddV2:
    case ops::kSub:
    case ops::kMul:
    case ops::kMaximum:
    case ops::kMinimum:
    case ops::kDiv:
    case ops::kTruncateDiv:
    case ops::kFloorDiv:
    case ops::kFloorMod:
      return OfArithmetic(context);
    case ops::kNeg:
      return OfNeg(context);
    case ops::kPack:
      return OfPack(context);
    case ops::kConcat:
      return OfConcat(context, 1, context.num_inputs());
    case ops::kConcatV2:
      return OfConcat(context, 0, context.num_inputs() - 1);
    case ops::kStridedSlice:
      return OfStridedSlice(context);
    case ops::kSlice:
      return OfSlice(context);
    case ops::kGather:
    case ops::kGatherV2:
      return OfGather(context);
    case ops::kRange:
      return OfRange(context);
    case ops::kFill:
      return OfFill(context);
    case ops::kSplit:
      return OfPieces(context, 1);
    case ops::kSplitV:
    case ops::kUnpack:
      return OfPieces(context, 0);
    case ops::kProd:
    case ops::kSum:
    case ops::kMax:
    case ops::kMin:
      return OfReduction(context);
    default:
      return {};
  }
}

}  // namespace

const KnownIntegers* IntegerPropagation::Integers(TensorRef ref) const {
  const auto found = known_.find(std::make_pair(ref.node->id(), ref.port));
  return found == known_.end() ? nullptr : &found->second;
}

void IntegerPropagation::Visit(const ShapeContext& context) {
  if (context.num_outputs() == 0 || elements_held_ >= kMostPropagatedElementsInAll) return;
  Outputs outputs = Compute(context);
  for (size_t port = 0; port < outputs.size(); ++port) {
    if (!outputs[port]) continue;
    elements_held_ += outputs[port]->elements.size();
    known_.emplace(std::make_pair(context.node().id(), static_cast<int>(port)), *std::move(outputs[port]));
  }
}

}  // namespace permafrost

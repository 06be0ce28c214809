// Implements the helpers for Prepare functions.
#include "runtime_check/kernels/prepare.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/tensor.h"

namespace permafrost {

absl::Status SameShape(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(0));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> IntegerVectorInput(PrepareContext* context, int i) {
  if (context->input_shape(i).rank() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(),
                                                   ", expected a scalar or a vector"));
  }
  const Tensor* value = context->input_value(i);
  if (value == nullptr) {
    absl::Status later = context->NeedsValueOf(i);
    if (later.ok()) return absl::InternalError("a value that is not known was asked for without effect");
    return later;
  }
  absl::StatusOr<std::vector<int64_t>> values = IntegerValues(*value);
  if (!values.ok()) return Annotate(values.status(), absl::StrCat("input ", i));
  return values;
}

absl::StatusOr<int64_t> IntegerInput(PrepareContext* context, int i) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> values, IntegerVectorInput(context, i));
  if (values.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", values.size(), " elements, expected 1"));
  }
  return values[0];
}

absl::StatusOr<int> ResolveAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis is ", axis, ", expected a value in [", -rank, ", ", rank, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::Status SetCheckedShape(PrepareContext* context, int i, Shape shape) {
  for (int64_t dim : shape.dims()) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " would have the shape ", shape.ToString(), ", with a negative dimension"));
    }
  }
  PF_ASSIGN_OR_RETURN(int64_t count, shape.CheckedNumElements());
  int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(SizeOf(context->output_type(i))), &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("output ", i, " would have the shape ", shape.ToString(), ", which no memory holds"));
  }
  context->SetOutputShape(i, std::move(shape));
  return absl::OkStatus();
}

absl::Status RequireRank(PrepareContext* context, int i, int rank) {
  if (context->input_shape(i).rank() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(), ", expected a rank of ", rank));
}

absl::StatusOr<Shape> ShapeOfJoined(PrepareContext* context, int first, int count, int axis) {
  const Shape& model = context->input_shape(first);
  int64_t whole = 0;
  for (int i = first; i < first + count; ++i) {
    const Shape& own = context->input_shape(i);
    Shape expected = model;
    if (own.rank() == model.rank()) expected.set_dim(axis, own.dim(axis));
    if (own != expected) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", own.ToString(), ", expected ",
                                                     model.ToString(), " save for dimension ", axis));
    }
    if (__builtin_add_overflow(whole, own.dim(axis), &whole)) {
      return absl::InvalidArgumentError(absl::StrCat("the sizes at axis ", axis, " exceed int64"));
    }
  }
  Shape joined = model;
  joined.set_dim(axis, whole);
  return joined;
}

int64_t ProductOfDims(const Shape& shape, int begin, int end) {
  uint64_t product = 1;
  for (int i = begin; i < end; ++i) product *= static_cast<uint64_t>(shape.dim(i));
  return static_cast<int64_t>(product);
}

std::vector<DType> MovableTypes() {
  std::vector<DType> types;
  for (DType type : {
#define DTYPE(enumerator, number, text, type, field) DType::enumerator,
#include "graph/dtypes.def"
#undef DTYPE
       }) {
    if (SizeOf(type) > 0) types.push_back(type);
  }
  return types;
}

std::vector<DType> MovableAndStringTypes() {
  std::vector<DType> types = MovableTypes();
  types.push_back(DType::kString);
  return types;
}

std::vector<DType> NumberTypes() {
  return {DType::kFloat, DType::kDouble, DType::kHalf,  DType::kBFloat16, DType::kInt8,   DType::kInt16,
          DType::kInt32, DType::kInt64,  DType::kUint8, DType::kUint16,   DType::kUint32, DType::kUint64};
}

std::vector<DType> NumberAndComplexTypes() {
  std::vector<DType> types = NumberTypes();
  types.push_back(DType::kComplex64);
  types.push_back(DType::kComplex128);
  return types;
}

std::vector<DType> FloatingTypes() { return {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}; }

std::vector<DType> FloatingAndComplexTypes() {
  std::vector<DType> types = FloatingTypes();
  types.push_back(DType::kComplex64);
  types.push_back(DType::kComplex128);
  return types;
}

std::vector<DType> IndexTypes() { return {DType::kInt32, DType::kInt64}; }

}  // namespace permafrost

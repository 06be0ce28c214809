// Implements the nodes that compute positions.
#include "io/formats/tflite/index_nodes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

// Positions are numbers of 64 bits; larger tensors do not fit in memory.
constexpr int64_t kMostElements = int64_t{1} << 40;

absl::StatusOr<TensorRef> ReshapeTo(OperatorImport* op, TensorRef x, std::vector<int64_t> dims) {
  const Shape shape({static_cast<int64_t>(dims.size())});
  PF_ASSIGN_OR_RETURN(const TensorRef target, Longs(op, shape, std::move(dims)));
  return op->Emit(ops::kReshape, {x, target});
}

absl::StatusOr<TensorRef> SliceOf(OperatorImport* op, TensorRef x, std::vector<int64_t> begin,
                                  std::vector<int64_t> size) {
  const Shape shape({static_cast<int64_t>(begin.size())});
  PF_ASSIGN_OR_RETURN(const TensorRef from, Longs(op, shape, std::move(begin)));
  PF_ASSIGN_OR_RETURN(const TensorRef count, Longs(op, shape, std::move(size)));
  return op->Emit(ops::kSlice, {x, from, count});
}

absl::StatusOr<TensorRef> Padded(OperatorImport* op, TensorRef x, const std::vector<int64_t>& low,
                                 const std::vector<int64_t>& high, TensorRef value) {
  std::vector<int64_t> pairs;
  for (size_t d = 0; d < low.size(); ++d) {
    pairs.push_back(low[d]);
    pairs.push_back(high[d]);
  }
  PF_ASSIGN_OR_RETURN(const TensorRef paddings,
                      Longs(op, Shape({static_cast<int64_t>(low.size()), 2}), std::move(pairs)));
  return op->Emit(ops::kPadV2, {x, paddings, value});
}

}  // namespace

absl::StatusOr<Shape> KnownInputShape(const OperatorImport& op, int i) {
  PF_ASSIGN_OR_RETURN(Shape shape, OpenShapeOfTflite(op.InputTensor(i)));
  if (!shape.IsFullyKnown()) {
    return absl::UnimplementedError(
        absl::StrCat("operand ", i, " has the shape ", shape.ToString(), ", expected a known one"));
  }
  int64_t elements = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) > kMostElements / std::max<int64_t>(elements, 1)) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " has the shape ", shape.ToString(),
                                                     ", expected at most ", kMostElements, " elements"));
    }
    elements *= shape.dim(d);
  }
  return shape;
}

absl::StatusOr<std::vector<int64_t>> ConstantIntegers(OperatorImport* op, int i) {
  PF_ASSIGN_OR_RETURN(const Tensor* value, op->InputValue(i));
  if (value == nullptr) return absl::UnimplementedError(absl::StrCat("operand ", i, " is computed"));
  std::vector<int64_t> numbers;
  if (value->dtype() == DType::kInt32) {
    for (int64_t k = 0; k < value->num_elements(); ++k) numbers.push_back(value->elements<int32_t>()[k]);
  } else if (value->dtype() == DType::kInt64) {
    for (int64_t k = 0; k < value->num_elements(); ++k) numbers.push_back(value->elements<int64_t>()[k]);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("operand ", i, " has the type ", DTypeName(value->dtype()), ", expected int32 or int64"));
  }
  return numbers;
}

absl::StatusOr<TensorRef> Longs(OperatorImport* op, const Shape& shape, std::vector<int64_t> values) {
  PF_RETURN_IF_ERROR(op->subgraph().model().container().TakeMade(values.size() * sizeof(int64_t)));
  return op->Const(Tensor::FromVector(shape, std::move(values)));
}

absl::StatusOr<TensorRef> CastTo(OperatorImport* op, TensorRef x, DType dtype) {
  PF_ASSIGN_OR_RETURN(const DType from, op->TypeOf(x));
  if (from == dtype) return x;
  return op->Emit(ops::kCast, {x}, {{"DstT", AttrValue::Type(dtype)}});
}

absl::StatusOr<TensorRef> Transposed(OperatorImport* op, TensorRef x, const std::vector<int32_t>& perm) {
  bool is_identity = true;
  for (size_t d = 0; d < perm.size(); ++d) is_identity &= perm[d] == static_cast<int32_t>(d);
  if (is_identity) return x;
  PF_ASSIGN_OR_RETURN(const TensorRef order, op->Ints(perm));
  return op->Emit(ops::kTranspose, {x, order});
}

absl::StatusOr<TensorRef> ExtendRank(OperatorImport* op, TensorRef x, int rank, int count) {
  for (int i = 0; i < count; ++i) {
    PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(rank + i)));
    PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kExpandDims, {x, axis}));
  }
  return x;
}

std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (int d = shape.rank() - 1; d > 0; --d) {
    strides[static_cast<size_t>(d) - 1] = strides[static_cast<size_t>(d)] * shape.dim(d);
  }
  return strides;
}

// Each dimension gets a second one of size 1 that is padded; both are merged again, and the values behind the last
// element are cut off.
absl::StatusOr<TensorRef> SpreadElements(OperatorImport* op, TensorRef x, const Shape& shape,
                                         absl::Span<const int64_t> interior, TensorRef value) {
  std::vector<int64_t> split, low, high, merged, begin, size;
  int num_open = 0;
  bool is_spread = false;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t n = shape.dim(d), between = interior[static_cast<size_t>(d)];
    if (between < 0 || between > kMostElements) {
      return absl::InvalidArgumentError(absl::StrCat("places ", between, " elements between those of dimension ", d,
                                                     ", expected 0 to ", kMostElements));
    }
    if (n < 0 && (between > 0 || ++num_open > 1)) {
      return absl::UnimplementedError(
          absl::StrCat("pads an operand of shape ", shape.ToString(), ", expected a known one"));
    }
    split.push_back(n);
    low.push_back(0);
    high.push_back(0);
    begin.push_back(0);
    if (between == 0) {
      merged.push_back(n);
      size.push_back(n);
      continue;
    }
    is_spread = true;
    split.push_back(1);
    low.push_back(0);
    high.push_back(between);
    if (n > kMostElements / (between + 1)) return absl::InvalidArgumentError("its result is too large");
    merged.push_back(n * (between + 1));
    size.push_back(n == 0 ? 0 : (n - 1) * (between + 1) + 1);
  }
  if (!is_spread) return x;
  PF_ASSIGN_OR_RETURN(x, ReshapeTo(op, x, std::move(split)));
  PF_ASSIGN_OR_RETURN(x, Padded(op, x, low, high, value));
  PF_ASSIGN_OR_RETURN(x, ReshapeTo(op, x, std::move(merged)));
  return SliceOf(op, x, std::move(begin), std::move(size));
}

absl::StatusOr<TensorRef> PadEnds(OperatorImport* op, TensorRef x, absl::Span<const int64_t> low,
                                  absl::Span<const int64_t> high, TensorRef value) {
  std::vector<int64_t> before, after, begin;
  bool pads = false, cuts = false;
  for (size_t d = 0; d < low.size(); ++d) {
    pads |= low[d] > 0 || high[d] > 0;
    cuts |= low[d] < 0 || high[d] < 0;
    before.push_back(std::max<int64_t>(low[d], 0));
    after.push_back(std::max<int64_t>(high[d], 0));
  }
  if (pads) {
    PF_ASSIGN_OR_RETURN(x, Padded(op, x, before, after, value));
  }
  if (!cuts) return x;
  std::vector<int32_t> from, to, ones(low.size(), 1);
  int64_t end_mask = 0;
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] < -kMostElements || high[d] < -kMostElements || low[d] < INT32_MIN || high[d] < INT32_MIN) {
      return absl::InvalidArgumentError("removes more elements than there are");
    }
    from.push_back(static_cast<int32_t>(std::max<int64_t>(-low[d], 0)));
    to.push_back(static_cast<int32_t>(std::min<int64_t>(high[d], 0)));
    if (high[d] >= 0) end_mask |= int64_t{1} << d;
  }
  PF_ASSIGN_OR_RETURN(const TensorRef first, op->Ints(from));
  PF_ASSIGN_OR_RETURN(const TensorRef last, op->Ints(to));
  PF_ASSIGN_OR_RETURN(const TensorRef steps, op->Ints(ones));
  return op->Emit(ops::kStridedSlice, {x, first, last, steps}, {{"end_mask", AttrValue::Int(end_mask)}});
}

// Skipped updates go to an element behind the last one, which is cut off.
absl::StatusOr<TensorRef> ScatterLinear(OperatorImport* op, TensorRef x, const Shape& shape, TensorRef indices,
                                        TensorRef is_valid, TensorRef updates, ScatterKind kind) {
  const int64_t count = shape.num_elements();
  std::vector<int64_t> dims;
  for (int d = 0; d < shape.rank(); ++d) dims.push_back(shape.dim(d));
  PF_ASSIGN_OR_RETURN(x, ReshapeTo(op, x, {-1}));
  PF_ASSIGN_OR_RETURN(const TensorRef zero, op->ScalarLike(x, 0));
  PF_ASSIGN_OR_RETURN(x, Padded(op, x, {0}, {1}, zero));
  PF_ASSIGN_OR_RETURN(const TensorRef behind, Longs(op, Shape(), {count}));
  PF_ASSIGN_OR_RETURN(indices, op->Emit(ops::kSelectV2, {is_valid, indices, behind}));
  PF_ASSIGN_OR_RETURN(indices, ReshapeTo(op, indices, {-1, 1}));
  PF_ASSIGN_OR_RETURN(updates, ReshapeTo(op, updates, {-1}));
  const Op scatter = kind == ScatterKind::kAdd   ? Op(ops::kTensorScatterAdd)
                     : kind == ScatterKind::kMin ? Op(ops::kTensorScatterMin)
                     : kind == ScatterKind::kMax ? Op(ops::kTensorScatterMax)
                                                 : Op(ops::kTensorScatterUpdate);
  PF_ASSIGN_OR_RETURN(x, op->Emit(scatter, {x, indices, updates}));
  PF_ASSIGN_OR_RETURN(x, SliceOf(op, x, {0}, {count}));
  return ReshapeTo(op, x, std::move(dims));
}

}  // namespace permafrost

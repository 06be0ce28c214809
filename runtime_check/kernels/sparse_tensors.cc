// Ops on sparse tensors: SparseFillEmptyRows, SparseReshape, SparseReorder, SparseSlice, SparseConcat and
// SparseTensorDenseMatMul.
//
// A sparse tensor is a matrix of indices with one row for each value, a vector of values, and the shape.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// The inputs that hold a sparse tensor. A tensor without values has only indices and a shape.
struct Places {
  int indices, values, shape;
};

absl::Status RequireSparse(PrepareContext* context, const Places& places) {
  PF_RETURN_IF_ERROR(RequireRank(context, places.indices, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, places.shape, 1));
  const Shape &indices = context->input_shape(places.indices), &shape = context->input_shape(places.shape);
  const bool fits = indices.dim(1) == shape.dim(0) &&
                    (places.values < 0 || context->input_shape(places.values) == Shape({indices.dim(0)}));
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the indices have the shape ", indices.ToString(),
      places.values < 0 ? "" : absl::StrCat(", the values ", context->input_shape(places.values).ToString()),
      " and the shape ", shape.ToString(), ", expected [n,rank]", places.values < 0 ? "" : ", [n]", " and [rank]"));
}

// A sparse tensor without its values. Does not own the numbers.
struct Sparse {
  const int64_t* indices = nullptr;
  int64_t count = 0, rank = 0;
  std::vector<int64_t> shape;

  const int64_t* row(int64_t i) const { return indices + i * rank; }
};

// Returns InvalidArgument for indices out of the shape.
absl::StatusOr<Sparse> ReadSparse(ComputeContext* context, const Places& places) {
  Sparse sparse;
  sparse.indices = context->input<int64_t>(places.indices);
  sparse.count = context->input_shape(places.indices).dim(0);
  sparse.rank = context->input_shape(places.indices).dim(1);
  const int64_t* shape = context->input<int64_t>(places.shape);
  sparse.shape.assign(shape, shape + sparse.rank);
  for (int64_t d = 0; d < sparse.rank; ++d) {
    if (shape[d] < 0) return absl::InvalidArgumentError(absl::StrCat("the shape has ", shape[d], " in dimension ", d));
  }
  // With rank 0, the number of rows is not limited by the file; they have nothing to check.
  for (int64_t i = 0; sparse.rank > 0 && i < sparse.count; ++i) {
    for (int64_t d = 0; d < sparse.rank; ++d) {
      if (sparse.row(i)[d] < 0 || sparse.row(i)[d] >= shape[d]) {
        return absl::InvalidArgumentError(absl::StrCat("the indices have ", sparse.row(i)[d], " in row ", i,
                                                       " and dimension ", d, ", expected 0 to ", shape[d] - 1));
      }
    }
  }
  return sparse;
}

// Copies the value from[i] of input `values` to place i of output 1.
void CopyValues(ComputeContext* context, int values, const std::vector<int64_t>& from, int64_t place) {
  if (from.empty()) return;
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(values)));
  const char* input = context->input_bytes(values);
  char* output = context->output_bytes(1) + place * bytes;
  for (size_t i = 0; i < from.size(); ++i, output += bytes) {
    std::memcpy(output, input + from[i] * bytes, static_cast<size_t>(bytes));
  }
}

// --- SparseFillEmptyRows ---------------------------------------------------------------------------------------------

constexpr Places kFirstInputs = {0, 1, 2};

absl::Status PrepareFillEmptyRows(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireSparse(context, kFirstInputs));
  PF_RETURN_IF_ERROR(RequireRank(context, 3, 0));
  if (context->input_shape(2).dim(0) < 1) {
    return absl::InvalidArgumentError("the sparse tensor is a scalar, expected a rank of at least 1");
  }
  for (int i = 0; i < 3; ++i) context->OutputShapeDependsOnValues(i);
  context->SetOutputShape(3, Shape({context->input_shape(0).dim(0)}));
  return absl::OkStatus();
}

absl::Status ComputeFillEmptyRows(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Sparse sparse, ReadSparse(context, kFirstInputs));
  const int64_t rows = sparse.shape[0];
  if (rows > INT64_MAX / static_cast<int64_t>(4 * sizeof(int64_t))) {
    return absl::InvalidArgumentError(absl::StrCat("the shape has ", rows, " rows, which fit no memory"));
  }
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), rows * static_cast<int64_t>(2 * sizeof(int64_t)),
                                        "the first value of each row"));
  // The place of the next value of each row.
  std::vector<int64_t> next(static_cast<size_t>(rows));
  for (int64_t i = 0; i < sparse.count; ++i) ++next[static_cast<size_t>(sparse.row(i)[0])];
  PF_RETURN_IF_ERROR(context->AllocateOutput(2, Shape({rows})));
  bool* is_empty = context->output<bool>(2);
  int64_t total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t count = next[static_cast<size_t>(r)];
    is_empty[r] = count == 0;
    next[static_cast<size_t>(r)] = total;
    total += std::max<int64_t>(1, count);
  }
  const Shape indices_shape({total, sparse.rank});
  PF_RETURN_IF_ERROR(indices_shape.CheckedNumElements().status());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, indices_shape));
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape({total})));
  int64_t* indices = context->output<int64_t>(0);
  int64_t* map = context->output<int64_t>(3);
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(1)));
  const char* values = context->input_bytes(1);
  const char* filler = context->input_bytes(3);
  char* output = context->output_bytes(1);
  for (int64_t r = 0; r < rows; ++r) {
    if (!is_empty[r]) continue;
    const int64_t place = next[static_cast<size_t>(r)];
    std::fill_n(indices + place * sparse.rank, sparse.rank, int64_t{0});
    indices[place * sparse.rank] = r;
    std::memcpy(output + place * bytes, filler, static_cast<size_t>(bytes));
  }
  for (int64_t i = 0; i < sparse.count; ++i) {
    const int64_t place = next[static_cast<size_t>(sparse.row(i)[0])]++;
    std::copy_n(sparse.row(i), sparse.rank, indices + place * sparse.rank);
    std::memcpy(output + place * bytes, values + i * bytes, static_cast<size_t>(bytes));
    map[i] = place;
  }
  return absl::OkStatus();
}

// --- SparseReshape ---------------------------------------------------------------------------------------------------

constexpr Places kWithoutValues = {0, -1, 1};

absl::Status PrepareReshape(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireSparse(context, kWithoutValues));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 1));
  PF_RETURN_IF_ERROR(
      SetCheckedShape(context, 0, Shape({context->input_shape(0).dim(0), context->input_shape(2).dim(0)})));
  return SetCheckedShape(context, 1, context->input_shape(2));
}

// Returns the product; InvalidArgument if it exceeds int64.
absl::StatusOr<int64_t> ProductOf(const std::vector<int64_t>& dims) { return Shape(dims).CheckedNumElements(); }

absl::Status ComputeReshape(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Sparse sparse, ReadSparse(context, kWithoutValues));
  const int64_t rank = context->input_shape(2).dim(0);
  const int64_t* wanted = context->input<int64_t>(2);
  std::vector<int64_t> shape(wanted, wanted + rank);
  PF_ASSIGN_OR_RETURN(const int64_t size, ProductOf(sparse.shape));
  int64_t open = -1;
  for (int64_t d = 0; d < rank; ++d) {
    if (shape[d] >= 0) continue;
    if (shape[d] != -1 || open >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the new shape is [", absl::StrJoin(shape, ","), "], expected at most one -1, else sizes"));
    }
    open = d;
  }
  if (open >= 0) {
    shape[open] = 1;
    PF_ASSIGN_OR_RETURN(const int64_t rest, ProductOf(shape));
    if (rest == 0) return absl::InvalidArgumentError("the new shape has -1 beside 0, which leaves its size open");
    shape[open] = size / rest;
  }
  PF_ASSIGN_OR_RETURN(const int64_t new_size, ProductOf(shape));
  if (new_size != size) {
    return absl::InvalidArgumentError(absl::StrCat("the shape [", absl::StrJoin(sparse.shape, ","),
                                                   "] has not as many elements as [", absl::StrJoin(shape, ","), "]"));
  }
  std::copy(shape.begin(), shape.end(), context->output<int64_t>(1));
  int64_t* indices = context->output<int64_t>(0);
  if (rank == 0) return absl::OkStatus();
  for (int64_t i = 0; i < sparse.count && !RunIsCancelled(); ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < sparse.rank; ++d) at = at * sparse.shape[d] + sparse.row(i)[d];
    for (int64_t d = rank - 1; d >= 0; --d) {
      indices[i * rank + d] = at % shape[d];
      at /= shape[d];
    }
  }
  return absl::OkStatus();
}

// --- SparseReorder, SparseSlice, SparseConcat ------------------------------------------------------------------------

// Returns the numbers of the rows in row-major order; equal rows stay in their order.
std::vector<int64_t> RowMajorOrder(const int64_t* indices, int64_t count, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(indices + a * rank, indices + (a + 1) * rank, indices + b * rank,
                                        indices + (b + 1) * rank);
  });
  return order;
}

absl::Status PrepareReorder(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireSparse(context, kFirstInputs));
  context->SetOutputShape(0, context->input_shape(0));
  context->SetOutputShape(1, context->input_shape(1));
  return absl::OkStatus();
}

absl::Status ComputeReorder(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Sparse sparse, ReadSparse(context, kFirstInputs));
  const std::vector<int64_t> order = RowMajorOrder(sparse.indices, sparse.count, sparse.rank);
  int64_t* indices = context->output<int64_t>(0);
  for (const int64_t i : order) indices = std::copy_n(sparse.row(i), sparse.rank, indices);
  CopyValues(context, 1, order, 0);
  return absl::OkStatus();
}

absl::Status PrepareSlice(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireSparse(context, kFirstInputs));
  for (const int i : {3, 4}) {
    if (context->input_shape(i) != context->input_shape(2)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(),
                                                     ", expected ", context->input_shape(2).ToString()));
    }
  }
  context->OutputShapeDependsOnValues(0);
  context->OutputShapeDependsOnValues(1);
  context->SetOutputShape(2, context->input_shape(2));
  return absl::OkStatus();
}

absl::Status ComputeSlice(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const Sparse sparse, ReadSparse(context, kFirstInputs));
  const int64_t* start = context->input<int64_t>(3);
  const int64_t* size = context->input<int64_t>(4);
  int64_t* shape = context->output<int64_t>(2);
  for (int64_t d = 0; d < sparse.rank; ++d) {
    if (start[d] < 0 || size[d] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the slice starts at ", start[d], " and has the size ", size[d],
                                                     " in dimension ", d, ", expected at least 0"));
    }
    shape[d] = std::max<int64_t>(0, std::min(size[d], sparse.shape[d] - start[d]));
  }
  std::vector<int64_t> inside;
  for (int64_t i = 0; i < sparse.count; ++i) {
    bool is_inside = true;
    for (int64_t d = 0; d < sparse.rank; ++d) {
      const int64_t at = sparse.row(i)[d] - start[d];
      is_inside = is_inside && at >= 0 && at < shape[d];
    }
    if (is_inside) inside.push_back(i);
  }
  const auto count = static_cast<int64_t>(inside.size());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({count, sparse.rank})));
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape({count})));
  int64_t* indices = context->output<int64_t>(0);
  for (const int64_t i : inside) {
    for (int64_t d = 0; d < sparse.rank; ++d) *indices++ = sparse.row(i)[d] - start[d];
  }
  CopyValues(context, 1, inside, 0);
  return absl::OkStatus();
}

Places PlacesOfPart(int num_inputs, int part) {
  const int parts = num_inputs / 3;
  return {part, parts + part, 2 * parts + part};
}

absl::Status PrepareConcat(PrepareContext* context) {
  const int parts = context->num_inputs() / 3;
  if (parts < 1) return absl::InvalidArgumentError("it has no inputs, expected at least 3");
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(context->node(), "concat_dim"));
  int64_t count = 0;
  for (int i = 0; i < parts; ++i) {
    const Places places = PlacesOfPart(context->num_inputs(), i);
    PF_RETURN_IF_ERROR(RequireSparse(context, places));
    if (context->input_shape(places.shape) != context->input_shape(PlacesOfPart(context->num_inputs(), 0).shape)) {
      return absl::InvalidArgumentError("the sparse tensors have different ranks");
    }
    if (__builtin_add_overflow(count, context->input_shape(places.indices).dim(0), &count)) {
      return absl::InvalidArgumentError("the number of values exceeds int64");
    }
  }
  const Shape& shape = context->input_shape(2 * parts);
  PF_RETURN_IF_ERROR(ResolveAxis(axis, static_cast<int>(std::min<int64_t>(shape.dim(0), INT32_MAX))).status());
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({count, shape.dim(0)})));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, Shape({count})));
  return SetCheckedShape(context, 2, shape);
}

absl::Status ComputeConcat(ComputeContext* context) {
  const int parts = context->num_inputs() / 3;
  const int64_t rank = context->input_shape(2 * parts).dim(0), total = context->output_shape(1).dim(0);
  PF_ASSIGN_OR_RETURN(const int64_t given, IntAttr(context->node(), "concat_dim"));
  const int64_t axis = given < 0 ? given + rank : given;
  const auto bytes = static_cast<int64_t>(SizeOf(context->output_type(1)));
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), total * (rank + 2) * static_cast<int64_t>(sizeof(int64_t)),
                                        "the joined indices"));
  std::vector<int64_t> indices, shape;
  std::vector<const char*> values;
  indices.reserve(static_cast<size_t>(total * rank));
  values.reserve(static_cast<size_t>(total));
  for (int i = 0; i < parts; ++i) {
    const Places places = PlacesOfPart(context->num_inputs(), i);
    PF_ASSIGN_OR_RETURN(const Sparse sparse, ReadSparse(context, places));
    const int64_t before = shape.empty() ? 0 : shape[axis];
    if (shape.empty()) shape = sparse.shape;
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis && sparse.shape[d] != shape[d]) {
        return absl::InvalidArgumentError(absl::StrCat("sparse tensor ", i, " has the size ", sparse.shape[d],
                                                       " in dimension ", d, ", expected ", shape[d]));
      }
    }
    if (__builtin_add_overflow(before, sparse.shape[axis], &shape[axis])) {
      return absl::InvalidArgumentError("the size of the result exceeds int64");
    }
    for (int64_t row = 0; row < sparse.count; ++row) {
      for (int64_t d = 0; d < rank; ++d) indices.push_back(sparse.row(row)[d] + (d == axis ? before : 0));
      values.push_back(context->input_bytes(places.values) + row * bytes);
    }
  }
  std::copy(shape.begin(), shape.end(), context->output<int64_t>(2));
  if (total == 0) return absl::OkStatus();
  int64_t* to = context->output<int64_t>(0);
  char* output = context->output_bytes(1);
  for (const int64_t i : RowMajorOrder(indices.data(), total, rank)) {
    to = std::copy_n(indices.data() + i * rank, rank, to);
    std::memcpy(output, values[static_cast<size_t>(i)], static_cast<size_t>(bytes));
    output += bytes;
  }
  return absl::OkStatus();
}

// --- SparseTensorDenseMatMul -----------------------------------------------------------------------------------------

absl::Status PrepareProduct(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireSparse(context, kFirstInputs));
  PF_RETURN_IF_ERROR(RequireRank(context, 3, 2));
  if (context->input_shape(2) != Shape({2})) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sparse tensor has the rank ", context->input_shape(2).dim(0), ", expected a matrix"));
  }
  PF_ASSIGN_OR_RETURN(const bool adjoint_a, BoolAttr(context->node(), "adjoint_a"));
  PF_ASSIGN_OR_RETURN(const bool adjoint_b, BoolAttr(context->node(), "adjoint_b"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> a, IntegerVectorInput(context, 2));
  const Shape& b = context->input_shape(3);
  if (a[adjoint_a ? 0 : 1] != b.dim(adjoint_b ? 1 : 0)) {
    return absl::InvalidArgumentError(absl::StrCat("the matrices have the shapes [", absl::StrJoin(a, ","), "]",
                                                   adjoint_a ? " (adjoint)" : "", " and ", b.ToString(),
                                                   adjoint_b ? " (adjoint)" : "", ", whose inner sizes differ"));
  }
  return SetCheckedShape(context, 0, Shape({a[adjoint_a ? 1 : 0], b.dim(adjoint_b ? 0 : 1)}));
}

template <typename T, typename Index>
absl::Status MultiplySparse(ComputeContext* context, bool adjoint_a, bool adjoint_b) {
  const Shape &output_shape = context->output_shape(0), &b_shape = context->input_shape(3);
  const int64_t rows = output_shape.dim(0), columns = output_shape.dim(1), inner = b_shape.dim(adjoint_b ? 1 : 0);
  const Index* indices = context->input<Index>(0);
  const T* values = context->input<T>(1);
  const T* b = context->input<T>(3);
  T* output = context->output<T>(0);
  std::fill_n(output, rows * columns, T());
  for (int64_t i = 0; i < context->input_shape(0).dim(0) && !RunIsCancelled(); ++i) {
    const int64_t row = indices[2 * i + (adjoint_a ? 1 : 0)], k = indices[2 * i + (adjoint_a ? 0 : 1)];
    if (row < 0 || row >= rows || k < 0 || k >= inner) {
      return absl::InvalidArgumentError(absl::StrCat("the indices have [", indices[2 * i], ",", indices[2 * i + 1],
                                                     "] in row ", i, ", out of the matrix"));
    }
    const T factor = adjoint_a ? Conjugate(values[i]) : values[i];
    T* to = output + row * columns;
    for (int64_t c = 0; c < columns; ++c) {
      const T other = adjoint_b ? Conjugate(b[c * inner + k]) : b[k * columns + c];
      to[c] = Narrow<T>(Widen(to[c]) + Widen(factor) * Widen(other));
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeProduct(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool adjoint_a, BoolAttr(context->node(), "adjoint_a"));
  PF_ASSIGN_OR_RETURN(const bool adjoint_b, BoolAttr(context->node(), "adjoint_b"));
  absl::Status status;
  DispatchOn<float, double, int32_t, std::complex<float>, std::complex<double>>(context->input_type(1), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = context->input_type(0) == DType::kInt32 ? MultiplySparse<T, int32_t>(context, adjoint_a, adjoint_b)
                                                     : MultiplySparse<T, int64_t>(context, adjoint_a, adjoint_b);
  });
  return status;
}

template <PrepareFunction prepare, ComputeFunction compute>
Kernel SparseKernel(const char* formula) {
  return Kernel(formula)
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<prepare>)
      .Compute(ComputeNumbered<compute>);
}

}  // namespace

DEFINE_KERNEL(SparseFillEmptyRows) {
  return SparseKernel<PrepareFillEmptyRows, ComputeFillEmptyRows>(
      "the sparse tensor with default_value in the first column of each empty row, and which rows were empty");
}
DEFINE_KERNEL(SparseReshape) {
  return Kernel("the indices in the new shape of the values at input_indices")
      .Prepare(PrepareReshape)
      .Compute(ComputeReshape);
}
DEFINE_KERNEL(SparseReorder) {
  return SparseKernel<PrepareReorder, ComputeReorder>("the sparse tensor with its values in row-major order");
}
DEFINE_KERNEL(SparseSlice) {
  return SparseKernel<PrepareSlice, ComputeSlice>("the values of a sparse tensor inside a block, and their indices");
}
DEFINE_KERNEL(SparseConcat) {
  return SparseKernel<PrepareConcat, ComputeConcat>("sparse tensors joined along a dimension, in row-major order");
}
DEFINE_KERNEL(SparseTensorDenseMatMul) {
  return Kernel("the product of a sparse matrix and a matrix, each adjoint if the attributes say so")
      .Types<float, double, BFloat16, int32_t, std::complex<float>, std::complex<double>>("T")
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(PrepareWidened<PrepareProduct>)
      .Compute(ComputeWidened<ComputeProduct>);
}

}  // namespace permafrost

// MatMul, BatchMatMul, its later versions, and _FusedMatMul.
#include <algorithm>
#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/matrix_pairs.h"
#include "runtime_check/kernels/packed_input.h"
#include "runtime_check/kernels/post_ops.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/wide_elements.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// One operand of each product, and its layout in memory.
struct Operand {
  int64_t rows = 0, columns = 0;  // After transposition.
  bool transposed = false;
  bool conjugated = false;  // Only for complex numbers.

  int64_t size() const { return rows * columns; }
  int64_t row_step() const { return transposed ? 1 : columns; }
  int64_t column_step() const { return transposed ? rows : 1; }
};

struct MatMulState : public KernelState {
  const InnerLoops* loops = nullptr;
  Operand a, b;
  // One product for each pair: indices of the matrices in a and in b.
  std::vector<std::pair<int64_t, int64_t>> products;

  // Only for float.
  PackedShape packed_shape;
  int64_t packed_size = 0;
  PackedInput packed;  // All matrices of b if they are constant; else unset.
  int64_t packed_part = 0, transposed_part = 0;
  PostOps post_ops;
};

// Prepares the products. If `conjugates`, complex matrices are conjugated when they are transposed.
absl::Status PrepareProducts(PrepareContext* context, bool transpose_a, bool transpose_b, bool conjugates) {
  const Shape &a = context->input_shape(0), &b = context->input_shape(1);
  auto state = std::make_unique<MatMulState>();
  for (int i = 0; i < 2; ++i) {
    const Shape& shape = context->input_shape(i);
    if (shape.rank() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", shape.ToString(), ", expected rank 2 or more"));
    }
    Operand& operand = i == 0 ? state->a : state->b;
    operand.transposed = i == 0 ? transpose_a : transpose_b;
    operand.conjugated = conjugates && operand.transposed;
    operand.rows = shape.dim(shape.rank() - (operand.transposed ? 1 : 2));
    operand.columns = shape.dim(shape.rank() - (operand.transposed ? 2 : 1));
  }
  if (state->a.columns != state->b.rows) {
    return absl::InvalidArgumentError(absl::StrCat("the matrices have the shapes ", a.ToString(),
                                                   transpose_a ? " (transposed)" : "", " and ", b.ToString(),
                                                   transpose_b ? " (transposed)" : "", ", whose inner sizes differ"));
  }
  // Checks the shape before building the list, since the length of the list depends on the output.
  PF_ASSIGN_OR_RETURN(Shape output, BroadcastShapes(Shape(a.dims().subspan(0, a.rank() - 2)),
                                                    Shape(b.dims().subspan(0, b.rank() - 2))));
  output.AddDim(state->a.rows);
  output.AddDim(state->b.columns);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  if (output.num_elements() > 0) PF_RETURN_IF_ERROR(PairMatrices(a, b, &state->products).status());

  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->post_ops, ReadPostOps(context, 2, state->b.columns, &parts));
  if (context->input_type(0) == DType::kFloat && !state->products.empty()) {
    state->loops = &BestInnerLoops();
    state->packed_shape = {state->b.rows, state->b.columns};
    PF_ASSIGN_OR_RETURN(state->packed_size, state->packed_shape.Size(*state->loops));
    const int64_t matrices = ProductOfDims(b, 0, b.rank() - 2);
    int64_t all = 0;
    if (__builtin_mul_overflow(matrices, state->packed_size, &all)) {
      return absl::InvalidArgumentError("input 1 is too large");
    }
    PF_RETURN_IF_ERROR(state->packed.Take(
        context, 1, *state->loops, all,
        [&] { return std::string(state->b.transposed ? "transposed matrices" : "matrices"); },
        [&](const float* value, float* packed) {
          for (int64_t i = 0; i < matrices; ++i) {
            Pack(*state->loops, state->packed_shape, value + i * state->b.size(), state->b.row_step(),
                 state->b.column_step(), packed + i * state->packed_size);
          }
        }));
    if (state->packed.data() == nullptr) {
      PF_ASSIGN_OR_RETURN(state->packed_part, parts.Add(state->packed_size));
    }
    if (transpose_a) {
      PF_ASSIGN_OR_RETURN(state->transposed_part, parts.Add(state->a.size()));
    }
  }
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

void MultiplyFloats(ComputeContext* context, const MatMulState& state) {
  const float* a = context->input<float>(0);
  const float* b = context->input<float>(1);
  float* output = context->output<float>(0);
  int64_t in_scratch = -1;  // Index of the matrix of b that the scratch memory holds.
  for (const auto& [number_a, number_b] : state.products) {
    const float* left = a + number_a * state.a.size();
    if (state.a.transposed) {
      float* rows = ScratchAt(context, state.transposed_part);
      for (int64_t r = 0; r < state.a.rows; ++r) {
        for (int64_t c = 0; c < state.a.columns; ++c) rows[r * state.a.columns + c] = left[c * state.a.rows + r];
      }
      left = rows;
    }
    const float* packed = state.packed.data();
    if (packed != nullptr) {
      packed += number_b * state.packed_size;
    } else {
      float* own = ScratchAt(context, state.packed_part);
      if (in_scratch != number_b) {
        Pack(*state.loops, state.packed_shape, b + number_b * state.b.size(), state.b.row_step(), state.b.column_step(),
             own);
      }
      in_scratch = number_b;
      packed = own;
    }
    ParallelMultiply(*state.loops, context->threads(), state.a.rows, state.packed_shape, left, state.a.columns, packed,
                     output, state.b.columns);
    output += state.a.rows * state.b.columns;
  }
}

template <typename T>
void MultiplyElements(ComputeContext* context, const MatMulState& state) {
  const T* a = context->input<T>(0);
  const T* b = context->input<T>(1);
  T* output = context->output<T>(0);
  for (const auto& [number_a, number_b] : state.products) {
    for (int64_t r = 0; r < state.a.rows; ++r) {
      for (int64_t c = 0; c < state.b.columns; ++c) {
        const T* left = a + number_a * state.a.size() + r * state.a.row_step();
        const T* right = b + number_b * state.b.size() + c * state.b.column_step();
        decltype(Widen(T())) sum{};
        for (int64_t k = 0; k < state.b.rows; ++k) {
          const T x = left[k * state.a.column_step()], y = right[k * state.b.row_step()];
          sum += Widen(state.a.conjugated ? Conjugate(x) : x) * Widen(state.b.conjugated ? Conjugate(y) : y);
        }
        *output++ = Narrow<T>(sum);
      }
    }
  }
}

absl::Status PrepareMatMul(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 2));
  PF_ASSIGN_OR_RETURN(const bool transpose_a, BoolAttr(context->node(), "transpose_a"));
  PF_ASSIGN_OR_RETURN(const bool transpose_b, BoolAttr(context->node(), "transpose_b"));
  return PrepareProducts(context, transpose_a, transpose_b, /*conjugates=*/false);
}

absl::Status PrepareBatchMatMul(PrepareContext* context) {
  const Shape &a = context->input_shape(0), &b = context->input_shape(1);
  if (context->node().op() == ops::kBatchMatMul) {
    PF_RETURN_IF_ERROR(RequireRank(context, 1, a.rank()));
    for (int i = 0; i < a.rank() - 2; ++i) {
      if (a.dim(i) != b.dim(i)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the inputs have the shapes ", a.ToString(), " and ", b.ToString(), ", whose batches differ"));
      }
    }
  }
  PF_ASSIGN_OR_RETURN(const bool adj_x, BoolAttr(context->node(), "adj_x"));
  PF_ASSIGN_OR_RETURN(const bool adj_y, BoolAttr(context->node(), "adj_y"));
  return PrepareProducts(context, adj_x, adj_y, /*conjugates=*/true);
}

// The types of V3 are equal, except for products of bytes, which are summed in int32.
bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

absl::Status PrepareBatchMatMulV3(PrepareContext* context) {
  const DType a = context->input_type(0), b = context->input_type(1), output = context->output_type(0);
  const bool is_of_bytes = IsByte(a) && IsByte(b) && output == DType::kInt32;
  if (!is_of_bytes && (a != b || a != output || IsByte(a))) {
    return absl::UnimplementedError(absl::StrCat("found the types ", DTypeName(a), ", ", DTypeName(b), " and ",
                                                 DTypeName(output), ", expected equal ones, or bytes and int32"));
  }
  return PrepareBatchMatMul(context);
}

template <typename A, typename B>
void MultiplyBytes(ComputeContext* context, const MatMulState& state) {
  const A* a = context->input<A>(0);
  const B* b = context->input<B>(1);
  int32_t* output = context->output<int32_t>(0);
  for (const auto& [number_a, number_b] : state.products) {
    for (int64_t r = 0; r < state.a.rows && !RunIsCancelled(); ++r) {
      for (int64_t c = 0; c < state.b.columns; ++c) {
        const A* left = a + number_a * state.a.size() + r * state.a.row_step();
        const B* right = b + number_b * state.b.size() + c * state.b.column_step();
        uint32_t sum = 0;
        for (int64_t k = 0; k < state.b.rows; ++k) {
          sum +=
              static_cast<uint32_t>(int32_t{left[k * state.a.column_step()]} * int32_t{right[k * state.b.row_step()]});
        }
        output[r * state.b.columns + c] = static_cast<int32_t>(sum);
      }
    }
    output += state.a.rows * state.b.columns;
  }
}

absl::Status ComputeMatMul(ComputeContext* context) {
  const auto& state = context->state<MatMulState>();
  if (state.products.empty()) return absl::OkStatus();
  const DType dtype = context->output_at(0).dtype;
  if (dtype == DType::kFloat) {
    MultiplyFloats(context, state);
  } else {
    DispatchOn<double, Half, BFloat16, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double>>(
        dtype, [&](auto tag) { MultiplyElements<typename decltype(tag)::type>(context, state); });
  }
  BoundPostOps(state.post_ops, context).ApplyToRows(context, dtype, state.a.rows, context->output_bytes(0));
  return absl::OkStatus();
}

absl::Status ComputeBatchMatMulV3(ComputeContext* context) {
  if (!IsByte(context->input_type(0))) return ComputeMatMul(context);
  const auto& state = context->state<MatMulState>();
  DispatchOn<int8_t, uint8_t>(context->input_type(0), [&](auto a) {
    DispatchOn<int8_t, uint8_t>(context->input_type(1), [&](auto b) {
      MultiplyBytes<typename decltype(a)::type, typename decltype(b)::type>(context, state);
    });
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(MatMul) {
  return Kernel("product[i,j] = sum over k of a[i,k] * b[k,j]")
      .Types<float, double, Half, BFloat16, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double>>("T")
      .Prepare(PrepareMatMul)
      .Compute(ComputeMatMul);
}

DEFINE_KERNEL(_FusedMatMul) {
  return Kernel(
             "f(product[i,j] + args[0][j]), where product[i,j] = sum over k of a[i,k] * b[k,j] and f is an activation")
      .Types<float, Half, BFloat16>("T")
      .Prepare(PrepareMatMul)
      .Compute(ComputeMatMul);
}

DEFINE_KERNEL(BatchMatMul) {
  return Kernel("output[...,i,j] = sum over k of x[...,i,k] * y[...,k,j]")
      .Types<float, double, Half, BFloat16, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double>>("T")
      .Prepare(PrepareBatchMatMul)
      .Compute(ComputeMatMul);
}

DEFINE_KERNEL(BatchMatMulV2) {
  return Kernel("output[...,i,j] = sum over k of x[...,i,k] * y[...,k,j], with broadcast batch dimensions")
      .Types<float, double, Half, BFloat16, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double>>("T")
      .Prepare(PrepareBatchMatMul)
      .Compute(ComputeMatMul);
}

DEFINE_KERNEL(BatchMatMulV3) {
  return Kernel(
             "output[...,i,j] = sum over k of x[...,i,k] * y[...,k,j], with broadcast batch dimensions; sums of "
             "products of bytes are int32")
      .Types<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, int32_t, int64_t, std::complex<float>,
             std::complex<double>>("Ta")
      .Types<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, int32_t, int64_t, std::complex<float>,
             std::complex<double>>("Tb")
      .Types<float, double, Half, BFloat16, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double>>(
          "Tout")
      .Prepare(PrepareBatchMatMulV3)
      .Compute(ComputeBatchMatMulV3);
}

}  // namespace permafrost

// QuantizedMatMul: products of codes.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/code_product.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"

namespace permafrost {
namespace {

struct MatMulState : public KernelState {
  CodeProduct product;
  int64_t depth = 0;
  int64_t row_step = 0, column_step = 0;  // Strides of the left matrix.
};

absl::Status PrepareMatMul(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 2));
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 2, 4));
  PF_ASSIGN_OR_RETURN(const bool transpose_a, BoolAttr(context->node(), "transpose_a"));
  PF_ASSIGN_OR_RETURN(const bool transpose_b, BoolAttr(context->node(), "transpose_b"));
  const Shape &a = context->input_shape(0), &b = context->input_shape(1);
  auto state = std::make_unique<MatMulState>();
  state->depth = a.dim(transpose_a ? 0 : 1);
  state->row_step = transpose_a ? 1 : a.dim(1);
  state->column_step = transpose_a ? a.dim(1) : 1;
  const int64_t rows = a.dim(transpose_a ? 1 : 0), columns = b.dim(transpose_b ? 0 : 1);
  if (state->depth != b.dim(transpose_b ? 1 : 0)) {
    return absl::InvalidArgumentError(absl::StrCat("the left matrix has ", state->depth, " columns, the right ",
                                                   b.dim(transpose_b ? 1 : 0), " rows"));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape{rows, columns}));
  SetRangeOutputShapes(context);
  const int64_t b_row_step = transpose_b ? 1 : b.dim(1), b_column_step = transpose_b ? b.dim(1) : 1;
  PF_ASSIGN_OR_RETURN(state->product,
                      CodeProduct::Prepare(context, rows, state->depth, columns, 1, b_row_step, b_column_step));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeMatMul(ComputeContext* context) {
  const auto& state = context->state<MatMulState>();
  const Range a_range = RangeInput(*context, 2), b_range = RangeInput(*context, 4);
  PF_RETURN_IF_ERROR(CheckRange(a_range, "a"));
  PF_RETURN_IF_ERROR(CheckRange(b_range, "b"));
  SetRangeOutput(context, ProductRange<uint8_t, uint8_t>(a_range, b_range));
  const auto* a = context->input_bits<uint8_t>(0);
  const auto gather = [&](int64_t first, int64_t count, int16_t* rows, uint32_t* sums) {
    const int64_t padded = state.product.padded_depth();
    for (int64_t r = 0; r < count; ++r, rows += padded) {
      const uint8_t* from = a + (first + r) * state.row_step;
      uint32_t sum = 0;
      for (int64_t k = 0; k < state.depth; ++k) {
        const uint8_t code = from[k * state.column_step];
        rows[k] = code;
        sum += code;
      }
      for (int64_t k = state.depth; k < padded; ++k) rows[k] = 0;
      sums[r] = sum;
    }
  };
  state.product.Run(context, ZeroPoint<uint8_t>(a_range), ZeroPoint<uint8_t>(b_range), 255, gather,
                    context->output_bits<int32_t>(0));
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(QuantizedMatMul) {
  return Kernel("out[i, j] = sum over k of (a[i, k] - zero point of a) * (b[k, j] - zero point of b), on codes")
      .Types<QUint8>("T1")
      .Types<QUint8>("T2")
      .Types<QInt32>("Toutput")
      .Prepare(PrepareMatMul)
      .Compute(ComputeMatMul);
}

}  // namespace permafrost

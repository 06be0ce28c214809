// Poolings, reductions, softmax, normalisation, resizing and matrix products of codes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/integer/integer_convolution.h"
#include "runtime_check/kernels/integer/integer_reduction.h"
#include "runtime_check/kernels/integer/integer_resize.h"
#include "runtime_check/kernels/integer_operator.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

template <typename Operator>
struct RowState : public KernelState {
  Operator op;
  RowPieces pieces;
};

template <typename Operator>
absl::Status Finish(PrepareContext* context, Operator op, int64_t rows, int64_t row_cost, int64_t scratch_size) {
  auto state = std::make_unique<RowState<Operator>>();
  state->op = std::move(op);
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->pieces, RowPieces::Make(*context, rows, row_cost, scratch_size, &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PreparePool(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 1, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(context->node(), ImageLayout()));
  PF_ASSIGN_OR_RETURN(const Window window,
                      ReadWindow(context->node(), ImageLayout(), kernel, input.dim(1), input.dim(2)));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape{input.dim(0), window.y.output, window.x.output, input.dim(3)}));
  PF_ASSIGN_OR_RETURN(const Affine codes, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine output, OutputAffine(*context));
  if (codes.type != output.type || codes.scale != output.scale || codes.zero_point != output.zero_point) {
    return absl::UnimplementedError("input and output have different scales, which no kernel supports");
  }
  PF_ASSIGN_OR_RETURN(const FusedActivation activation, ReadActivation(context->node()));
  PF_ASSIGN_OR_RETURN(IntegerPool pool,
                      IntegerPool::Make(PoolOp::kAverage, codes, activation, input.dim(0), input.dim(3), window));
  const int64_t rows = pool.rows(), scratch = pool.scratch_size();
  return Finish(context, std::move(pool), rows, input.dim(3) * window.x.output, scratch);
}

absl::Status ComputePool(ComputeContext* context) {
  const auto& state = context->state<RowState<IntegerPool>>();
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  state.pieces.Run(context, [&](int64_t first, int64_t last, char* scratch) {
    state.op.Compute(input, first, last, scratch, output);
  });
  return absl::OkStatus();
}

absl::Status PrepareReduce(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 2));
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntegerVectorInput(context, 1));
  const auto is_reduced = std::make_unique<bool[]>(static_cast<size_t>(input.rank()) + 1);
  for (const int64_t value : axes) {
    PF_ASSIGN_OR_RETURN(const int axis, ResolveAxis(value, input.rank()));
    is_reduced[static_cast<size_t>(axis)] = true;
  }
  PF_ASSIGN_OR_RETURN(const bool keep_dims, BoolAttr(node, "keep_dims"));
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (!is_reduced[static_cast<size_t>(i)]) {
      output.AddDim(input.dim(i));
    } else if (keep_dims) {
      output.AddDim(1);
    }
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  PF_ASSIGN_OR_RETURN(const std::string function, StringAttr(node, "function"));
  const ReduceOp op = function == "Mean" ? ReduceOp::kMean : function == "Sum" ? ReduceOp::kSum : ReduceOp::kProd;
  if (op == ReduceOp::kProd && function != "Prod") {
    return absl::InvalidArgumentError(absl::StrCat("attr 'function' is '", function, "', expected Mean, Sum or Prod"));
  }
  PF_ASSIGN_OR_RETURN(const Affine codes, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine result, OutputAffine(*context));
  PF_ASSIGN_OR_RETURN(const Rounding rounding, ReadRounding(node));
  PF_ASSIGN_OR_RETURN(
      IntegerReduction reduction,
      IntegerReduction::Make(op, codes, result, input.dims(),
                             absl::MakeConstSpan(is_reduced.get(), static_cast<size_t>(input.rank())), rounding));
  const int64_t rows = reduction.outputs();
  return Finish(context, std::move(reduction), rows, rows == 0 ? 0 : input.num_elements() / rows, 0);
}

absl::Status ComputeReduce(ComputeContext* context) {
  const auto& state = context->state<RowState<IntegerReduction>>();
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  state.pieces.Run(context, [&](int64_t first, int64_t last, char*) { state.op.Compute(input, first, last, output); });
  return absl::OkStatus();
}

// Operators that compute each row of the last dimension from that row alone.
template <typename Operator, typename MakeOperator>
absl::Status PrepareRows(PrepareContext* context, MakeOperator make) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 1, 1));
  const Shape& input = context->input_shape(0);
  if (input.rank() < 1) return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  const int64_t depth = input.dim(input.rank() - 1);
  PF_ASSIGN_OR_RETURN(const Affine codes, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine output, OutputAffine(*context));
  PF_ASSIGN_OR_RETURN(Operator op, make(codes, output, std::max<int64_t>(depth, 1)));
  PF_RETURN_IF_ERROR(SameShape(context));
  return Finish(context, std::move(op), depth == 0 ? 0 : input.num_elements() / depth, depth, 0);
}

absl::Status PrepareSoftmax(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const float beta, FloatAttr(context->node(), "beta"));
  return PrepareRows<IntegerSoftmax>(context, [&](const Affine& input, const Affine& output, int64_t depth) {
    return IntegerSoftmax::Make(input, output, beta, depth);
  });
}

absl::Status PrepareLogSoftmax(PrepareContext* context) {
  return PrepareRows<IntegerLogSoftmax>(context, [](const Affine& input, const Affine& output, int64_t depth) {
    return IntegerLogSoftmax::Make(input, output, 1, depth);
  });
}

absl::Status PrepareL2Normalize(PrepareContext* context) {
  return PrepareRows<IntegerL2Normalization>(context, [](const Affine& input, const Affine& output, int64_t depth) {
    return IntegerL2Normalization::Make(input, output, depth);
  });
}

template <typename Operator>
absl::Status ComputeRows(ComputeContext* context) {
  const auto& state = context->state<RowState<Operator>>();
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const Shape& shape = context->input_shape(0);
  const int64_t depth = shape.dim(shape.rank() - 1);
  const int64_t input_bytes = depth * static_cast<int64_t>(SizeOf(context->input_type(0)));
  const int64_t output_bytes = depth * static_cast<int64_t>(SizeOf(context->output_type(0)));
  state.pieces.Run(context, [&](int64_t first, int64_t last, char*) {
    state.op.Compute(last - first, input + first * input_bytes, output + first * output_bytes);
  });
  return absl::OkStatus();
}

absl::Status PrepareResize(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 1));
  if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
    return absl::InvalidArgumentError("input 1 is no size of an image");
  }
  ResizeSizes sizes;
  sizes.batch = input.dim(0);
  sizes.input_height = input.dim(1);
  sizes.input_width = input.dim(2);
  sizes.output_height = size[0];
  sizes.output_width = size[1];
  sizes.channels = input.dim(3);
  PF_ASSIGN_OR_RETURN(sizes.align_corners, BoolAttr(context->node(), "align_corners"));
  PF_ASSIGN_OR_RETURN(sizes.half_pixel_centers, BoolAttr(context->node(), "half_pixel_centers"));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape{input.dim(0), size[0], size[1], input.dim(3)}));
  PF_ASSIGN_OR_RETURN(const CodeType type, CodeTypeOf(context->input_type(0)));
  if (context->output_type(0) != context->input_type(0)) {
    return absl::InvalidArgumentError("input and output have different types");
  }
  PF_ASSIGN_OR_RETURN(IntegerResizeBilinear resize, IntegerResizeBilinear::Make(type, sizes));
  const int64_t rows = resize.rows();
  return Finish(context, std::move(resize), rows, size[1] * input.dim(3), 0);
}

absl::Status ComputeResize(ComputeContext* context) {
  const auto& state = context->state<RowState<IntegerResizeBilinear>>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  state.pieces.Run(context, [&](int64_t first, int64_t last, char*) { state.op.Compute(input, first, last, output); });
  return absl::OkStatus();
}

struct BatchState : public KernelState {
  IntegerMatrixProduct product;
  RowPieces pieces;
  std::vector<std::pair<int64_t, int64_t>> products;  // Matrices of the left and of the right side.
  int64_t left_bytes = 0, right_bytes = 0, output_bytes = 0;
  int64_t packed_part = 0;
};

absl::Status PrepareBatchMatMul(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 2));
  auto state = std::make_unique<BatchState>();
  PF_ASSIGN_OR_RETURN(const IntegerMatrixProduct::Sizes sizes, PrepareMatrixPairs(context, &state->products));
  PF_ASSIGN_OR_RETURN(const Affine left, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine right, InputAffine(*context, 1));
  PF_ASSIGN_OR_RETURN(const Affine result, OutputAffine(*context));
  PF_ASSIGN_OR_RETURN(const Rounding rounding, ReadRounding(context->node()));
  PF_ASSIGN_OR_RETURN(state->product, IntegerMatrixProduct::Make(left, right, result, sizes, rounding));
  state->left_bytes = sizes.rows * sizes.depth * BytesOf(left.type);
  state->right_bytes = sizes.depth * sizes.columns * BytesOf(right.type);
  state->output_bytes = sizes.rows * sizes.columns * BytesOf(result.type);
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->packed_part, parts.Add(state->product.packed_size(), 1));
  PF_ASSIGN_OR_RETURN(state->pieces, RowPieces::Make(*context, sizes.rows, context->input_shape(1).num_elements(),
                                                     state->product.scratch_size(), &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeBatchMatMul(ComputeContext* context) {
  const auto& state = context->state<BatchState>();
  if (state.products.empty()) return absl::OkStatus();
  const char *a = context->input_bytes(0), *b = context->input_bytes(1);
  char* output = context->output_bytes(0);
  char* packed = context->scratch() + state.packed_part;
  int64_t in_scratch = -1;  // Index of the packed matrix.
  for (const auto& [left, right] : state.products) {
    if (right != in_scratch) state.product.Pack(b + right * state.right_bytes, packed);
    in_scratch = right;
    const char* of_left = a + left * state.left_bytes;
    state.pieces.Run(context, [&](int64_t first, int64_t last, char* scratch) {
      state.product.Compute(of_left, packed, first, last, scratch, output);
    });
    output += state.output_bytes;
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(_IntegerPool) {
  return Kernel("mean of the codes of the window that lie inside the image, halves away from zero")
      .Prepare(PreparePool)
      .Compute(ComputePool);
}

DEFINE_KERNEL(_IntegerReduce) {
  return Kernel("Mean, Sum or Prod of the numbers that codes represent along axes, as codes of the output's scale")
      .Prepare(PrepareReduce)
      .Compute(ComputeReduce);
}

DEFINE_KERNEL(_IntegerSoftmax) {
  return Kernel("Softmax of the numbers that codes represent, as codes")
      .Prepare(PrepareSoftmax)
      .Compute(ComputeRows<IntegerSoftmax>);
}

DEFINE_KERNEL(_IntegerLogSoftmax) {
  return Kernel("LogSoftmax of the numbers that codes represent, as codes")
      .Prepare(PrepareLogSoftmax)
      .Compute(ComputeRows<IntegerLogSoftmax>);
}

DEFINE_KERNEL(_IntegerL2Normalize) {
  return Kernel("rows of codes divided by the square root of their sum of squares, as codes")
      .Prepare(PrepareL2Normalize)
      .Compute(ComputeRows<IntegerL2Normalization>);
}

DEFINE_KERNEL(_IntegerResizeBilinear) {
  return Kernel("ResizeBilinear of codes; int8 and int16 with positions of 10 fraction bits, uint8 in float")
      .Prepare(PrepareResize)
      .Compute(ComputeResize);
}

DEFINE_KERNEL(_IntegerBatchMatMul) {
  return Kernel("BatchMatMulV2 of codes, with the conversion of sums to codes of the output's scale")
      .Prepare(PrepareBatchMatMul)
      .Compute(ComputeBatchMatMul);
}

}  // namespace permafrost

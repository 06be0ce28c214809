// Operators with float input and int8 weights, which quantise their input when they run.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/integer/integer_hybrid.h"
#include "runtime_check/kernels/integer_operator.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

// Weights that are packed before the first run if they are constant, else in the scratch memory of each run.
struct PackedFilter {
  Tensor packed;
  int64_t part = -1;  // Offset in the scratch memory, or -1.

  template <typename Operator>
  absl::Status Prepare(PrepareContext* context, const Operator& op, ScratchParts* parts) {
    if (const Tensor* filter = context->input_value(1); filter != nullptr) {
      char* bytes = nullptr;
      PF_ASSIGN_OR_RETURN(packed, Tensor::Allocate(DType::kInt8, Shape({op.packed_size()}), &bytes));
      op.Pack(reinterpret_cast<const int8_t*>(filter->bytes().data()), bytes);
      context->ReleaseInput(1);
      return absl::OkStatus();
    }
    PF_ASSIGN_OR_RETURN(part, parts->Add(op.packed_size(), 1));
    return absl::OkStatus();
  }

  // Returns the packed weights.
  template <typename Operator>
  const char* Get(ComputeContext* context, const Operator& op) const {
    if (part < 0) return packed.bytes().data();
    char* to = context->scratch() + part;
    op.Pack(context->input<int8_t>(1), to);
    return to;
  }
};

struct DenseState : public KernelState {
  HybridDense op;
  PackedFilter filter;
  RowPieces pieces;
};

struct ConvolutionState : public KernelState {
  HybridConvolution op;
  PackedFilter filter;
  RowPieces pieces;  // Of one image.
  int64_t codes_part = 0;
};

absl::Status CheckTypes(PrepareContext* context, int64_t channels) {
  if (context->input_type(0) != DType::kFloat || context->input_type(1) != DType::kInt8 ||
      context->output_type(0) != DType::kFloat) {
    return absl::UnimplementedError(absl::StrCat("no kernel for input ", DTypeName(context->input_type(0)),
                                                 " and weights ", DTypeName(context->input_type(1)),
                                                 ", expected float and int8"));
  }
  if (context->num_inputs() < 3) return absl::OkStatus();
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 1));
  if (context->input_type(2) != DType::kFloat || context->input_shape(2).dim(0) != channels) {
    return absl::InvalidArgumentError(absl::StrCat("the bias is ", DTypeName(context->input_type(2)), " ",
                                                   context->input_shape(2).ToString(), ", expected ", channels,
                                                   " floats"));
  }
  return absl::OkStatus();
}

const float* BiasOf(ComputeContext* context) { return context->num_inputs() > 2 ? context->input<float>(2) : nullptr; }

absl::Status PrepareMatMul(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 3));
  for (int i = 0; i < 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 2));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const bool transposed, BoolAttr(node, "transpose_b"));
  if (!transposed) return absl::UnimplementedError("no kernel for weights [depth, columns], expected [columns, depth]");
  const int64_t columns = filter.dim(0), depth = filter.dim(1);
  if (input.dim(1) != depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", input.dim(1), " columns, the weights ", depth, " rows"));
  }
  PF_RETURN_IF_ERROR(CheckTypes(context, columns));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape{input.dim(0), columns}));
  PF_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatListAttr(node, "filter_scales"));
  PF_ASSIGN_OR_RETURN(const bool asymmetric, BoolAttr(node, "asymmetric_quantize_inputs"));
  PF_ASSIGN_OR_RETURN(const FusedActivation activation, ReadActivation(node));
  auto state = std::make_unique<DenseState>();
  PF_ASSIGN_OR_RETURN(state->op, HybridDense::Make(depth, columns, scales, asymmetric, activation));
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->pieces,
                      RowPieces::Make(*context, input.dim(0), filter.num_elements(), state->op.scratch_size(), &parts));
  PF_RETURN_IF_ERROR(state->filter.Prepare(context, state->op, &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeMatMul(ComputeContext* context) {
  const auto& state = context->state<DenseState>();
  if (state.pieces.rows == 0) return absl::OkStatus();
  const char* packed = state.filter.Get(context, state.op);
  const auto* input = context->input<float>(0);
  const float* bias = BiasOf(context);
  auto* output = context->output<float>(0);
  state.pieces.Run(context, [&](int64_t first, int64_t last, char* scratch) {
    state.op.Compute(input, packed, bias, first, last, scratch, output);
  });
  return absl::OkStatus();
}

absl::Status PrepareConvolution(PrepareContext* context, bool is_depthwise) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 3));
  for (int i = 0; i < 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 4));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  const Node& node = context->node();
  bool output_first = false;
  if (!is_depthwise) {
    PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "filter_format"));
    output_first = format == "OHWI";
  }
  const int height = output_first ? 1 : 0;
  ConvolutionSizes sizes;
  sizes.batch = input.dim(0);
  sizes.input_channels = input.dim(3);
  sizes.output_channels = filter.dim(output_first ? 0 : 3);
  const int64_t inputs = filter.dim(height + 2);
  if (is_depthwise && __builtin_mul_overflow(inputs, filter.dim(3), &sizes.output_channels)) {
    return absl::InvalidArgumentError("the filter has too many channels");
  }
  if (inputs < 1 || (is_depthwise ? inputs != sizes.input_channels : sizes.input_channels % inputs != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("the input has ", sizes.input_channels,
                                                   " channels, the filter the "
                                                   "shape ",
                                                   filter.ToString()));
  }
  if (!is_depthwise) sizes.groups = sizes.input_channels / inputs;
  PF_ASSIGN_OR_RETURN(sizes.window, ReadWindow(node, ImageLayout(), {filter.dim(height), filter.dim(height + 1)},
                                               input.dim(1), input.dim(2)));
  PF_RETURN_IF_ERROR(CheckTypes(context, sizes.output_channels));
  PF_RETURN_IF_ERROR(SetCheckedShape(
      context, 0, Shape{sizes.batch, sizes.window.y.output, sizes.window.x.output, sizes.output_channels}));
  PF_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatListAttr(node, "filter_scales"));
  PF_ASSIGN_OR_RETURN(const bool asymmetric, BoolAttr(node, "asymmetric_quantize_inputs"));
  PF_ASSIGN_OR_RETURN(const FusedActivation activation, ReadActivation(node));
  auto state = std::make_unique<ConvolutionState>();
  PF_ASSIGN_OR_RETURN(
      state->op, HybridConvolution::Make(sizes, is_depthwise, output_first ? sizes.OutputFirst() : sizes.OutputLast(),
                                         scales, asymmetric, activation));
  const int64_t rows = state->op.rows();
  const double cost = static_cast<double>(filter.num_elements()) * static_cast<double>(sizes.window.y.output) *
                      static_cast<double>(sizes.window.x.output) / static_cast<double>(std::max<int64_t>(rows, 1));
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->codes_part, parts.Add(state->op.image_size(), 1));
  PF_ASSIGN_OR_RETURN(state->pieces, RowPieces::Make(*context, rows, static_cast<int64_t>(std::min(cost, 1e15)),
                                                     state->op.scratch_size(), &parts));
  PF_RETURN_IF_ERROR(state->filter.Prepare(context, state->op, &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeConvolution(ComputeContext* context) {
  const auto& state = context->state<ConvolutionState>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const char* packed = state.filter.Get(context, state.op);
  const auto* input = context->input<float>(0);
  const float* bias = BiasOf(context);
  auto* output = context->output<float>(0);
  auto* codes = reinterpret_cast<int8_t*>(context->scratch() + state.codes_part);
  for (int64_t image = 0; image < state.op.images(); ++image) {
    const RowScale scale = state.op.Quantize(input + image * state.op.image_size(), codes);
    float* to = output + image * state.op.output_size();
    state.pieces.Run(context, [&](int64_t first, int64_t last, char* scratch) {
      state.op.Compute(codes, scale, packed, bias, first, last, scratch, to);
    });
  }
  return absl::OkStatus();
}

absl::Status PrepareConv2D(PrepareContext* context) { return PrepareConvolution(context, false); }
absl::Status PrepareDepthwise(PrepareContext* context) { return PrepareConvolution(context, true); }

struct BatchState : public KernelState {
  HybridMatrixProduct product;
  RowPieces pieces;
  std::vector<std::pair<int64_t, int64_t>> products;  // Matrices of the left and of the right side.
  int64_t left_size = 0, right_size = 0, output_size = 0;
};

absl::Status PrepareBatchMatMul(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 2));
  auto state = std::make_unique<BatchState>();
  PF_ASSIGN_OR_RETURN(const IntegerMatrixProduct::Sizes sizes, PrepareMatrixPairs(context, &state->products));
  PF_RETURN_IF_ERROR(CheckTypes(context, sizes.columns));
  PF_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatListAttr(context->node(), "filter_scales"));
  if (scales.size() != 1) return absl::UnimplementedError("its weights have a scale for each slice");
  PF_ASSIGN_OR_RETURN(const bool asymmetric, BoolAttr(context->node(), "asymmetric_quantize_inputs"));
  PF_ASSIGN_OR_RETURN(state->product, HybridMatrixProduct::Make(sizes, scales[0], asymmetric));
  state->left_size = sizes.rows * sizes.depth;
  state->right_size = sizes.depth * sizes.columns;
  state->output_size = sizes.rows * sizes.columns;
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->pieces, RowPieces::Make(*context, sizes.rows, context->input_shape(1).num_elements(),
                                                     state->product.scratch_size(), &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeBatchMatMul(ComputeContext* context) {
  const auto& state = context->state<BatchState>();
  if (state.products.empty()) return absl::OkStatus();
  const auto* a = context->input<float>(0);
  const auto* b = context->input<int8_t>(1);
  auto* output = context->output<float>(0);
  for (const auto& [left, right] : state.products) {
    const float* of_left = a + left * state.left_size;
    const int8_t* of_right = b + right * state.right_size;
    state.pieces.Run(context, [&](int64_t first, int64_t last, char* scratch) {
      state.product.Compute(of_left, of_right, first, last, scratch, output);
    });
    output += state.output_size;
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(_HybridMatMul) {
  return Kernel("MatMul of rows, each quantised to int8 when it runs, with int8 weights; then bias and activation")
      .Prepare(PrepareMatMul)
      .Compute(ComputeMatMul);
}

DEFINE_KERNEL(_HybridConv2D) {
  return Kernel("Conv2D of images, each quantised to int8 when it runs, with int8 weights; then bias and activation")
      .Prepare(PrepareConv2D)
      .Compute(ComputeConvolution);
}

DEFINE_KERNEL(_HybridDepthwiseConv2dNative) {
  return Kernel("DepthwiseConv2dNative of images, each quantised to int8 when it runs, with int8 weights")
      .Prepare(PrepareDepthwise)
      .Compute(ComputeConvolution);
}

DEFINE_KERNEL(_HybridBatchMatMul) {
  return Kernel("BatchMatMulV2 of rows, each quantised to int8 when it runs, with int8 weights")
      .Prepare(PrepareBatchMatMul)
      .Compute(ComputeBatchMatMul);
}

}  // namespace permafrost

// Operators with weights on codes: convolutions and the product with a matrix of weights.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/integer/integer_convolution.h"
#include "runtime_check/kernels/integer_operator.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

template <typename Operator>
struct WeightedState : public KernelState {
  Operator compute;
  RowPieces pieces;
  int bias = -1;             // Input, or -1 if there is none.
  Tensor packed;             // Weights and bias, if they are constant.
  int64_t packed_part = -1;  // Offset in the scratch memory of those that are not; else -1.
};

// Reads scales, bias type, activation and rounding. `bias_input` is the input that may be a bias of `channels`
// elements.
absl::StatusOr<IntegerWeighting> ReadWeighting(PrepareContext* context, int bias_input, int64_t channels,
                                               std::vector<float>* filter_scales) {
  const Node& node = context->node();
  IntegerWeighting weighting;
  PF_ASSIGN_OR_RETURN(weighting.input, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(weighting.output, OutputAffine(*context));
  PF_ASSIGN_OR_RETURN(*filter_scales, FloatListAttr(node, "filter_scales"));
  weighting.filter_scales = *filter_scales;
  PF_ASSIGN_OR_RETURN(const int64_t zero_point, IntAttr(node, "filter_zero_point"));
  weighting.filter_zero_point = static_cast<int32_t>(zero_point);
  PF_ASSIGN_OR_RETURN(weighting.activation, ReadActivation(node));
  PF_ASSIGN_OR_RETURN(weighting.rounding, ReadRounding(node));
  const DType filter_type = weighting.input.type == CodeType::kUint8 ? DType::kUint8 : DType::kInt8;
  if (context->input_type(1) != filter_type || context->output_type(0) != context->input_type(0)) {
    return absl::UnimplementedError(absl::StrCat("no integer kernel for input ", DTypeName(context->input_type(0)),
                                                 ", filter ", DTypeName(context->input_type(1)), " and output ",
                                                 DTypeName(context->output_type(0))));
  }
  if (context->num_inputs() <= bias_input) return weighting;
  PF_RETURN_IF_ERROR(RequireRank(context, bias_input, 1));
  if (context->input_shape(bias_input).dim(0) != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bias has ", context->input_shape(bias_input).dim(0), " elements, expected ", channels));
  }
  const DType type = context->input_type(bias_input);
  if (type != DType::kInt32 && type != DType::kInt64) {
    return absl::UnimplementedError(absl::StrCat("no integer kernel for a bias of type ", DTypeName(type)));
  }
  weighting.bias = type == DType::kInt32 ? BiasType::kInt32 : BiasType::kInt64;
  return weighting;
}

// Packs constant weights and requests the scratch memory.
template <typename Operator>
absl::Status Finish(PrepareContext* context, Operator compute, int64_t rows, int64_t row_cost, int bias_input) {
  auto state = std::make_unique<WeightedState<Operator>>();
  state->compute = std::move(compute);
  if (context->num_inputs() > bias_input) state->bias = bias_input;
  const Tensor* filter = context->input_value(1);
  const Tensor* bias = state->bias < 0 ? nullptr : context->input_value(state->bias);
  ScratchParts parts;
  if (filter != nullptr && (state->bias < 0 || bias != nullptr)) {
    char* packed = nullptr;
    PF_ASSIGN_OR_RETURN(state->packed, Tensor::Allocate(DType::kInt8, Shape({state->compute.packed_size()}), &packed));
    state->compute.Pack(filter->bytes().data(), bias == nullptr ? nullptr : bias->bytes().data(), packed);
    context->ReleaseInput(1);
    if (state->bias >= 0) context->ReleaseInput(state->bias);
  } else {
    PF_ASSIGN_OR_RETURN(state->packed_part, parts.Add(state->compute.packed_size(), 1));
  }
  PF_ASSIGN_OR_RETURN(state->pieces, RowPieces::Make(*context, rows, row_cost, state->compute.scratch_size(), &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

template <typename Operator>
absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<WeightedState<Operator>>();
  if (state.pieces.rows == 0) return absl::OkStatus();
  const char* packed = state.packed.bytes().data();
  if (state.packed_part >= 0) {
    char* to = context->scratch() + state.packed_part;
    state.compute.Pack(context->input_bytes(1), state.bias < 0 ? nullptr : context->input_bytes(state.bias), to);
    packed = to;
  }
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  state.pieces.Run(context, [&](int64_t first, int64_t last, char* scratch) {
    state.compute.Compute(input, packed, first, last, scratch, output);
  });
  return absl::OkStatus();
}

// Returns the product of two counts, or the largest number if it exceeds int64.
int64_t Product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

absl::Status PrepareConv2D(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 3));
  for (int i = 0; i < 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 4));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(context->node(), "filter_format"));
  const bool output_first = format == "OHWI";
  const int height = output_first ? 1 : 0;
  ConvolutionSizes sizes;
  sizes.batch = input.dim(0);
  sizes.input_channels = input.dim(3);
  sizes.output_channels = filter.dim(output_first ? 0 : 3);
  const int64_t group_inputs = filter.dim(height + 2);
  if (group_inputs < 1 || sizes.input_channels % group_inputs != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", sizes.input_channels, " channels, the filter ", group_inputs));
  }
  sizes.groups = sizes.input_channels / group_inputs;
  if (sizes.groups < 1 || sizes.output_channels % sizes.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the filter has ", sizes.output_channels,
                                                   " outputs, expected a "
                                                   "multiple of the ",
                                                   sizes.groups, " groups"));
  }
  PF_ASSIGN_OR_RETURN(sizes.window,
                      ReadWindow(context->node(), ImageLayout(), {filter.dim(height), filter.dim(height + 1)},
                                 input.dim(1), input.dim(2)));
  PF_RETURN_IF_ERROR(SetCheckedShape(
      context, 0, Shape{sizes.batch, sizes.window.y.output, sizes.window.x.output, sizes.output_channels}));
  std::vector<float> scales;
  PF_ASSIGN_OR_RETURN(const IntegerWeighting weighting, ReadWeighting(context, 2, sizes.output_channels, &scales));
  PF_ASSIGN_OR_RETURN(
      IntegerConvolution convolution,
      IntegerConvolution::Make(weighting, sizes, output_first ? sizes.OutputFirst() : sizes.OutputLast()));
  const int64_t rows = convolution.rows();
  const int64_t pixels = convolution.is_by_line() ? sizes.window.x.output : 1;
  return Finish(context, std::move(convolution), rows, Product(filter.num_elements(), pixels), 2);
}

absl::Status PrepareDepthwise(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 3));
  for (int i = 0; i < 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 4));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  ConvolutionSizes sizes;
  sizes.batch = input.dim(0);
  sizes.input_channels = input.dim(3);
  if (filter.dim(2) != sizes.input_channels ||
      __builtin_mul_overflow(filter.dim(2), filter.dim(3), &sizes.output_channels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", sizes.input_channels, " channels, the filter the shape ", filter.ToString()));
  }
  PF_ASSIGN_OR_RETURN(sizes.window, ReadWindow(context->node(), ImageLayout(), {filter.dim(0), filter.dim(1)},
                                               input.dim(1), input.dim(2)));
  PF_RETURN_IF_ERROR(SetCheckedShape(
      context, 0, Shape{sizes.batch, sizes.window.y.output, sizes.window.x.output, sizes.output_channels}));
  std::vector<float> scales;
  PF_ASSIGN_OR_RETURN(const IntegerWeighting weighting, ReadWeighting(context, 2, sizes.output_channels, &scales));
  PF_ASSIGN_OR_RETURN(IntegerDepthwise convolution, IntegerDepthwise::Make(weighting, sizes));
  const int64_t rows = convolution.rows();
  return Finish(context, std::move(convolution), rows, Product(filter.num_elements(), sizes.window.x.output), 2);
}

// Inputs: codes, filter, shape of the result, bias.
absl::Status PrepareBackpropInput(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 3, 4));
  for (int i = 0; i < 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 4));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> output, IntegerVectorInput(context, 2));
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(context->node(), "filter_format"));
  const bool output_first = format == "OHWI";
  const int height = output_first ? 1 : 0;
  ConvolutionSizes sizes;
  sizes.batch = input.dim(0);
  sizes.input_channels = input.dim(3);
  sizes.output_channels = filter.dim(output_first ? 0 : 2);
  if (output.size() != 4 || output[0] != sizes.batch || output[3] != sizes.output_channels ||
      filter.dim(3) != sizes.input_channels) {
    return absl::InvalidArgumentError(absl::StrCat("an input of shape ", input.ToString(), " and a filter of shape ",
                                                   filter.ToString(), " do not give the declared shape"));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape(output)));
  PF_ASSIGN_OR_RETURN(sizes.window, ReadWindow(context->node(), ImageLayout(),
                                               {filter.dim(height), filter.dim(height + 1)}, output[1], output[2]));
  if (sizes.window.y.output != input.dim(1) || sizes.window.x.output != input.dim(2)) {
    return absl::InvalidArgumentError(absl::StrCat("the input has ", input.dim(1), "x", input.dim(2),
                                                   " pixels, expected ", sizes.window.y.output, "x",
                                                   sizes.window.x.output));
  }
  const int64_t inputs = filter.dim(3), columns = filter.dim(height + 1);
  FilterStrides strides = {};
  strides.input = 1;
  if (output_first) {
    strides = {filter.dim(1) * columns * inputs, columns * inputs, inputs, 1};
  } else {
    strides = {inputs, columns * sizes.output_channels * inputs, sizes.output_channels * inputs, 1};
  }
  std::vector<float> scales;
  PF_ASSIGN_OR_RETURN(const IntegerWeighting weighting, ReadWeighting(context, 3, sizes.output_channels, &scales));
  PF_ASSIGN_OR_RETURN(IntegerTransposeConvolution convolution,
                      IntegerTransposeConvolution::Make(weighting, sizes, strides));
  const int64_t rows = convolution.rows();
  return Finish(context, std::move(convolution), rows, Product(filter.num_elements(), output[2]), 3);
}

absl::Status PrepareMatMul(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 3));
  for (int i = 0; i < 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 2));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const bool transposed, BoolAttr(context->node(), "transpose_b"));
  const int64_t depth = filter.dim(transposed ? 1 : 0), columns = filter.dim(transposed ? 0 : 1);
  if (input.dim(1) != depth) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", input.dim(1), " columns, the weights ", depth, " rows"));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape{input.dim(0), columns}));
  std::vector<float> scales;
  PF_ASSIGN_OR_RETURN(const IntegerWeighting weighting, ReadWeighting(context, 2, columns, &scales));
  IntegerProductTraits traits;
  traits.float_product = weighting.input.type == CodeType::kUint8;
  PF_ASSIGN_OR_RETURN(IntegerProduct product, IntegerProduct::Make(weighting, {depth, transposed ? 1 : columns},
                                                                   columns, transposed ? depth : 1, traits));
  return Finish(context, std::move(product), input.dim(0), filter.num_elements(), 2);
}

}  // namespace

DEFINE_KERNEL(_IntegerConv2D) {
  return Kernel("Conv2D of codes, with bias, activation and the conversion of sums to codes of the output's scale")
      .Prepare(PrepareConv2D)
      .Compute(Compute<IntegerConvolution>);
}

DEFINE_KERNEL(_IntegerDepthwiseConv2dNative) {
  return Kernel("DepthwiseConv2dNative of codes, with bias, activation and the conversion of sums to codes")
      .Prepare(PrepareDepthwise)
      .Compute(Compute<IntegerDepthwise>);
}

DEFINE_KERNEL(_IntegerConv2DBackpropInput) {
  return Kernel("Conv2DBackpropInput of codes, with bias, activation and the conversion of sums to codes")
      .Prepare(PrepareBackpropInput)
      .Compute(Compute<IntegerTransposeConvolution>);
}

DEFINE_KERNEL(_IntegerMatMul) {
  return Kernel("MatMul of codes, with bias, activation and the conversion of sums to codes")
      .Prepare(PrepareMatMul)
      .Compute(Compute<IntegerProduct>);
}

}  // namespace permafrost

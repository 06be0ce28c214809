// Operators on windows and on the space between elements: DILATE, REDUCE_WINDOW, their StableHLO forms, and MediaPipe's
// pooling with positions and its inverse.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/binary_subgraph.h"
#include "io/formats/tflite/index_nodes.h"
#include "io/formats/tflite/operator_import.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;
using tflite::ReduceWindowFunction;

// Positions in all windows of one dimension, which become a constant.
constexpr int64_t kMostPositions = 1 << 22;

// --- Padding ---------------------------------------------------------------------------------------------------------

// Operands: input, one dilation for each dimension, the value between elements.
Results Dilate(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const Shape shape, OpenShapeOfTflite(op->InputTensor(0)));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> interior, ConstantIntegers(op, 1));
  PF_ASSIGN_OR_RETURN(const TensorRef value, op->Input(2));
  if (static_cast<int>(interior.size()) != shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", interior.size(), " dilations for ", shape.rank(), " dimensions"));
  }
  for (int64_t& dilation : interior) {
    if (dilation < 1)
      return absl::InvalidArgumentError(absl::StrCat("has the dilation ", dilation, ", expected 1 or more"));
    --dilation;
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y, SpreadElements(op, x, shape, interior, value));
  return std::vector<TensorRef>{y};
}

// Returns an option with one number for each dimension.
absl::StatusOr<std::vector<int64_t>> NumbersOf(const flatbuffers::Vector<int64_t>* numbers, size_t count,
                                               absl::string_view name) {
  const size_t size = numbers == nullptr ? 0 : numbers->size();
  if (size != count) {
    return absl::InvalidArgumentError(absl::StrCat("has ", size, " numbers in ", name, ", expected ", count));
  }
  return count == 0 ? std::vector<int64_t>() : std::vector<int64_t>(numbers->begin(), numbers->end());
}

Results StablehloPad(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::StablehloPadOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef value, op->Input(1));
  PF_ASSIGN_OR_RETURN(const Shape shape, OpenShapeOfTflite(op->InputTensor(0)));
  const size_t rank = static_cast<size_t>(shape.rank());
  PF_ASSIGN_OR_RETURN(const auto low, NumbersOf(options->edge_padding_low(), rank, "edge_padding_low"));
  PF_ASSIGN_OR_RETURN(const auto high, NumbersOf(options->edge_padding_high(), rank, "edge_padding_high"));
  PF_ASSIGN_OR_RETURN(const auto interior, NumbersOf(options->interior_padding(), rank, "interior_padding"));
  PF_ASSIGN_OR_RETURN(x, SpreadElements(op, x, shape, interior, value));
  PF_ASSIGN_OR_RETURN(x, PadEnds(op, x, low, high, value));
  return std::vector<TensorRef>{x};
}

// --- Windows ---------------------------------------------------------------------------------------------------------

struct Windows {
  std::vector<int64_t> sizes, strides, dilations;
};

struct Reduction {
  Op over_axis, of_two;
};

absl::StatusOr<Reduction> ReductionOf(ReduceWindowFunction function, DType dtype) {
  switch (function) {
    case ReduceWindowFunction::ADD:
      return Reduction{ops::kSum, ops::kAddV2};
    case ReduceWindowFunction::MUL:
      return Reduction{ops::kProd, ops::kMul};
    case ReduceWindowFunction::MINIMUM:
      return Reduction{ops::kMin, ops::kMinimum};
    case ReduceWindowFunction::MAXIMUM:
      return Reduction{ops::kMax, ops::kMaximum};
    case ReduceWindowFunction::ALL:
      if (dtype == DType::kBool) return Reduction{ops::kAll, ops::kLogicalAnd};
      break;
    case ReduceWindowFunction::ANY:
      if (dtype == DType::kBool) return Reduction{ops::kAny, ops::kLogicalOr};
      break;
    default:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("reduces ", DTypeName(dtype), " by function ",
                                               static_cast<int>(function), ", which is not supported"));
}

// Reduces one dimension after the other: its elements are gathered by window, and the windows are reduced.
absl::StatusOr<TensorRef> ReduceWindows(OperatorImport* op, TensorRef x, const std::vector<int64_t>& dims,
                                        TensorRef init, const Windows& windows, const Reduction& reduction) {
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t size = windows.sizes[d], stride = windows.strides[d], dilation = windows.dilations[d];
    if (size < 1 || stride < 1 || dilation < 1 || size > kMostPositions || stride > kMostPositions ||
        dilation > kMostPositions) {
      return absl::InvalidArgumentError(absl::StrCat("has a window of ", size, " elements, stride ", stride,
                                                     " and dilation ", dilation, " in dimension ", d,
                                                     ", expected 1 to ", kMostPositions));
    }
    if (size == 1 && stride == 1) continue;
    if (dims[d] < 0)
      return absl::UnimplementedError(absl::StrCat("reduces dimension ", d, ", whose size is not known"));
    const int64_t reach = (size - 1) * dilation + 1;
    const int64_t count = dims[d] < reach ? 0 : (dims[d] - reach) / stride + 1;
    if (count > kMostPositions / size) {
      return absl::UnimplementedError(absl::StrCat("has ", count, " windows of ", size, " elements in dimension ", d,
                                                   ", expected at most ", kMostPositions, " elements in all"));
    }
    std::vector<int64_t> positions;
    for (int64_t w = 0; w < count; ++w) {
      for (int64_t k = 0; k < size; ++k) positions.push_back(w * stride + k * dilation);
    }
    PF_ASSIGN_OR_RETURN(const TensorRef indices,
                        Longs(op, size == 1 ? Shape({count}) : Shape({count, size}), std::move(positions)));
    PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar(static_cast<int32_t>(d))));
    PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kGatherV2, {x, indices, axis}));
    if (size == 1) continue;
    PF_ASSIGN_OR_RETURN(const TensorRef within, op->Ints({static_cast<int32_t>(d) + 1}));
    PF_ASSIGN_OR_RETURN(x, op->Emit(reduction.over_axis, {x, within}));
  }
  return op->Emit(reduction.of_two, {x, init});
}

std::vector<int64_t> DimsOf(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int d = 0; d < shape.rank(); ++d) dims.push_back(shape.dim(d));
  return dims;
}

// Operands: input, initial value, sizes, strides and dilations of windows.
Results ReduceWindow(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::ReduceWindowOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef init, op->Input(1));
  PF_ASSIGN_OR_RETURN(const Shape shape, OpenShapeOfTflite(op->InputTensor(0)));
  Windows windows;
  PF_ASSIGN_OR_RETURN(windows.sizes, ConstantIntegers(op, 2));
  PF_ASSIGN_OR_RETURN(windows.strides, ConstantIntegers(op, 3));
  PF_ASSIGN_OR_RETURN(windows.dilations, ConstantIntegers(op, 4));
  for (const auto* numbers : {&windows.sizes, &windows.strides, &windows.dilations}) {
    if (static_cast<int>(numbers->size()) != shape.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", numbers->size(), " sizes of windows for ", shape.rank(), " dimensions"));
    }
  }
  PF_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(options->reduce_function(), op->InputType(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef y, ReduceWindows(op, x, DimsOf(shape), init, windows, reduction));
  return std::vector<TensorRef>{y};
}

Results StablehloReduceWindow(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::StablehloReduceWindowOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (op->num_inputs() != 2) {
    return absl::UnimplementedError(absl::StrCat("reduces ", op->num_inputs() / 2, " operands, expected one"));
  }
  PF_ASSIGN_OR_RETURN(TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef init, op->Input(1));
  PF_ASSIGN_OR_RETURN(const Shape shape, OpenShapeOfTflite(op->InputTensor(0)));
  const size_t rank = static_cast<size_t>(shape.rank());
  // Options that are left out mean ones, and no padding.
  const auto numbers = [&](const flatbuffers::Vector<int64_t>* given, size_t count, int64_t otherwise,
                           absl::string_view name) -> absl::StatusOr<std::vector<int64_t>> {
    if (given == nullptr || given->size() == 0) return std::vector<int64_t>(count, otherwise);
    return NumbersOf(given, count, name);
  };
  Windows windows;
  PF_ASSIGN_OR_RETURN(windows.sizes, NumbersOf(options->window_dimensions(), rank, "window_dimensions"));
  PF_ASSIGN_OR_RETURN(windows.strides, numbers(options->window_strides(), rank, 1, "window_strides"));
  PF_ASSIGN_OR_RETURN(windows.dilations, numbers(options->window_dilations(), rank, 1, "window_dilations"));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> interior, numbers(options->base_dilations(), rank, 1, "base_dilations"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> padding, numbers(options->padding(), 2 * rank, 0, "padding"));
  PF_ASSIGN_OR_RETURN(const ReduceWindowFunction function,
                      FunctionOfSubgraph(op->subgraph().model().container(), options->body_subgraph_index()));
  PF_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(function, op->InputType(0)));
  std::vector<int64_t> low, high, dims = DimsOf(shape);
  constexpr int64_t kMostPadding = int64_t{1} << 31;
  for (size_t d = 0; d < rank; ++d) {
    if (interior[d] < 1 || interior[d] > kMostPositions) {
      return absl::InvalidArgumentError(
          absl::StrCat("has the base dilation ", interior[d], ", expected 1 to ", kMostPositions));
    }
    --interior[d];
    low.push_back(padding[2 * d]);
    high.push_back(padding[2 * d + 1]);
    if (low[d] < -kMostPadding || low[d] > kMostPadding || high[d] < -kMostPadding || high[d] > kMostPadding) {
      return absl::InvalidArgumentError(absl::StrCat("pads dimension ", d, " by ", low[d], " and ", high[d]));
    }
    if (dims[d] > 0) dims[d] += (dims[d] - 1) * interior[d];
    if (dims[d] >= 0) {
      dims[d] += low[d] + high[d];
      if (dims[d] < 0) return absl::InvalidArgumentError(absl::StrCat("pads dimension ", d, " to ", dims[d]));
    }
  }
  PF_ASSIGN_OR_RETURN(x, SpreadElements(op, x, shape, interior, init));
  PF_ASSIGN_OR_RETURN(x, PadEnds(op, x, low, high, init));
  PF_ASSIGN_OR_RETURN(const TensorRef y, ReduceWindows(op, x, dims, init, windows, reduction));
  return std::vector<TensorRef>{y};
}

// --- Pooling with positions ------------------------------------------------------------------------------------------

// TfLitePoolParams, the custom options of MediaPipe's operators, as far as they are read.
struct PoolParams {
  int32_t padding, stride_width, stride_height, filter_width, filter_height, activation;
};
constexpr int32_t kSame = 1, kValid = 2;

absl::StatusOr<PoolParams> PoolParamsOf(const OperatorImport& op) {
  const auto* bytes = op.op().custom_options();
  PoolParams params;
  if (bytes == nullptr || bytes->size() < sizeof params) {
    return absl::InvalidArgumentError(absl::StrCat("has custom options of ", bytes == nullptr ? 0 : bytes->size(),
                                                   " bytes, expected at least ", sizeof params));
  }
  std::memcpy(&params, bytes->data(), sizeof params);
  constexpr int32_t kMost = 1 << 15;
  for (const int32_t number : {params.stride_width, params.stride_height, params.filter_width, params.filter_height}) {
    if (number < 1 || number > kMost) {
      return absl::InvalidArgumentError(absl::StrCat("has a stride or filter of ", number, ", expected 1 to ", kMost));
    }
  }
  if (params.padding != kSame && params.padding != kValid) {
    return absl::InvalidArgumentError(absl::StrCat("has the padding ", params.padding, ", expected 1 or 2"));
  }
  if (params.activation != 0) {
    return absl::UnimplementedError(absl::StrCat("has the activation ", params.activation, ", expected none"));
  }
  return params;
}

// Elements before the first one that windows need.
int64_t PaddingBefore(int64_t size, int64_t filter, int64_t stride, int64_t count) {
  return std::max<int64_t>(0, (count - 1) * stride + filter - size) / 2;
}

// Positions 0, step, 2 step, ... less `offset`, along dimension `axis` of four.
absl::StatusOr<TensorRef> Positions(OperatorImport* op, int axis, int64_t count, int64_t step, int64_t offset) {
  std::vector<int64_t> dims(4, 1), values;
  dims[static_cast<size_t>(axis)] = count;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * step - offset);
  return Longs(op, Shape(dims), std::move(values));
}

// Rows and columns of an image, or of its windows.
struct ImageSize {
  int64_t rows = 0, columns = 0;
};

// The first row and the first column of each window, which may be outside of the image.
struct FirstPositions {
  TensorRef row, column;
};
absl::StatusOr<FirstPositions> FirstPositionsOf(OperatorImport* op, const PoolParams& params, ImageSize image,
                                                ImageSize windows) {
  FirstPositions first;
  PF_ASSIGN_OR_RETURN(first.row,
                      Positions(op, 1, windows.rows, params.stride_height,
                                PaddingBefore(image.rows, params.filter_height, params.stride_height, windows.rows)));
  PF_ASSIGN_OR_RETURN(
      first.column, Positions(op, 2, windows.columns, params.stride_width,
                              PaddingBefore(image.columns, params.filter_width, params.stride_width, windows.columns)));
  return first;
}

absl::StatusOr<TensorRef> WithNumber(OperatorImport* op, Op function, TensorRef x, int64_t number) {
  PF_ASSIGN_OR_RETURN(const TensorRef value, Longs(op, Shape(), {number}));
  return op->Emit(function, {x, value});
}

// The second result is the position of the maximum in its window, as a float a little above the integer.
Results MaxPoolingWithArgmax(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const PoolParams params, PoolParamsOf(*op));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const Shape shape, KnownInputShape(*op, 0));
  if (shape.rank() != 4 || op->InputType(0) != DType::kFloat) {
    return absl::InvalidArgumentError(absl::StrCat("pools ", DTypeName(op->InputType(0)), " of shape ",
                                                   shape.ToString(), ", expected floats of four dimensions"));
  }
  const bool is_same = params.padding == kSame;
  const auto count_of = [&](int64_t size, int64_t filter, int64_t stride) {
    return is_same ? (size + stride - 1) / stride : (size - filter + stride) / stride;
  };
  const int64_t height = shape.dim(1), width = shape.dim(2), depth = shape.dim(3);
  if (height < 1 || width < 1 || depth < 1) {
    return absl::InvalidArgumentError(absl::StrCat("pools an image of shape ", shape.ToString()));
  }
  const int64_t rows = count_of(height, params.filter_height, params.stride_height);
  const int64_t columns = count_of(width, params.filter_width, params.stride_width);
  if (rows < 1 || columns < 1) return absl::InvalidArgumentError("has a filter that is larger than the image");
  PF_ASSIGN_OR_RETURN(Node * pool,
                      op->Add(ops::kMaxPoolWithArgmax, {x},
                              {{"ksize", AttrValue::IntList({1, params.filter_height, params.filter_width, 1})},
                               {"strides", AttrValue::IntList({1, params.stride_height, params.stride_width, 1})},
                               {"Targmax", AttrValue::Type(DType::kInt64)},
                               {"padding", AttrValue::String(is_same ? "SAME" : "VALID")}}));
  const TensorRef position = {pool, 1};  // (y width + x) depth + channel.
  PF_ASSIGN_OR_RETURN(const TensorRef pixel, WithNumber(op, ops::kFloorDiv, position, depth));
  PF_ASSIGN_OR_RETURN(TensorRef row, WithNumber(op, ops::kFloorDiv, pixel, width));
  PF_ASSIGN_OR_RETURN(TensorRef column, WithNumber(op, ops::kFloorMod, pixel, width));
  PF_ASSIGN_OR_RETURN(const FirstPositions first, FirstPositionsOf(op, params, {height, width}, {rows, columns}));
  PF_ASSIGN_OR_RETURN(row, op->Emit(ops::kSub, {row, first.row}));
  PF_ASSIGN_OR_RETURN(column, op->Emit(ops::kSub, {column, first.column}));
  PF_ASSIGN_OR_RETURN(row, WithNumber(op, ops::kMul, row, params.filter_width));
  PF_ASSIGN_OR_RETURN(TensorRef index, op->Emit(ops::kAddV2, {row, column}));
  PF_ASSIGN_OR_RETURN(index, CastTo(op, index, DType::kFloat));
  constexpr float kAbove = 0.1F;
  PF_ASSIGN_OR_RETURN(const TensorRef above, op->Const(Tensor::Scalar(kAbove)));
  PF_ASSIGN_OR_RETURN(index, op->Emit(ops::kAddV2, {index, above}));
  return std::vector<TensorRef>{{pool, 0}, index};
}

// Operands: maxima, and their positions in the windows. Positions outside of the image are skipped.
Results MaxUnpooling(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const PoolParams params, PoolParamsOf(*op));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(TensorRef index, op->Input(1));
  PF_ASSIGN_OR_RETURN(const Shape shape, KnownInputShape(*op, 0));
  PF_ASSIGN_OR_RETURN(const Shape indices, KnownInputShape(*op, 1));
  if (shape.rank() != 4 || shape != indices || op->InputType(0) != DType::kFloat || op->InputType(1) != DType::kFloat) {
    return absl::InvalidArgumentError(absl::StrCat("has operands of shape ", shape.ToString(), " and ",
                                                   indices.ToString(),
                                                   ", expected equal ones of floats, of four "
                                                   "dimensions"));
  }
  const int64_t rows = shape.dim(1), columns = shape.dim(2), depth = shape.dim(3);
  const int64_t height = rows * params.filter_height, width = columns * params.filter_width;
  const Shape result({shape.dim(0), height, width, depth});
  PF_ASSIGN_OR_RETURN(index, CastTo(op, index, DType::kInt64));
  // Truncating division and remainder, as those of C.
  PF_ASSIGN_OR_RETURN(TensorRef row, WithNumber(op, ops::kTruncateDiv, index, params.filter_width));
  PF_ASSIGN_OR_RETURN(TensorRef column, WithNumber(op, ops::kTruncateMod, index, params.filter_width));
  PF_ASSIGN_OR_RETURN(const FirstPositions first, FirstPositionsOf(op, params, {height, width}, {rows, columns}));
  PF_ASSIGN_OR_RETURN(row, op->Emit(ops::kAddV2, {row, first.row}));
  PF_ASSIGN_OR_RETURN(column, op->Emit(ops::kAddV2, {column, first.column}));
  TensorRef is_valid;
  for (const auto& [position, size] : {std::make_pair(row, height), std::make_pair(column, width)}) {
    PF_ASSIGN_OR_RETURN(const TensorRef is_low, WithNumber(op, ops::kGreaterEqual, position, 0));
    PF_ASSIGN_OR_RETURN(const TensorRef is_high, WithNumber(op, ops::kLess, position, size));
    PF_ASSIGN_OR_RETURN(TensorRef is_inside, op->Emit(ops::kLogicalAnd, {is_low, is_high}));
    if (is_valid.node != nullptr) {
      PF_ASSIGN_OR_RETURN(is_inside, op->Emit(ops::kLogicalAnd, {is_valid, is_inside}));
    }
    is_valid = is_inside;
  }
  PF_ASSIGN_OR_RETURN(TensorRef position, WithNumber(op, ops::kMul, row, width * depth));
  PF_ASSIGN_OR_RETURN(column, WithNumber(op, ops::kMul, column, depth));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kAddV2, {position, column}));
  PF_ASSIGN_OR_RETURN(const TensorRef channels, Positions(op, 3, depth, 1, 0));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kAddV2, {position, channels}));
  PF_ASSIGN_OR_RETURN(const TensorRef images, Positions(op, 0, shape.dim(0), height * width * depth, 0));
  PF_ASSIGN_OR_RETURN(position, op->Emit(ops::kAddV2, {position, images}));
  PF_ASSIGN_OR_RETURN(const TensorRef dims, Longs(op, Shape({1}), {result.num_elements()}));
  PF_ASSIGN_OR_RETURN(const TensorRef zero, op->Const(Tensor::Scalar(0.0F)));
  PF_ASSIGN_OR_RETURN(const TensorRef zeros, op->Emit(ops::kFill, {dims, zero}));
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      ScatterLinear(op, zeros, result, position, is_valid, x, ScatterKind::kReplace));
  return std::vector<TensorRef>{y};
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::DILATE, 3, 1, Dilate},
    {BuiltinOperator::REDUCE_WINDOW, 5, 1, ReduceWindow},
    {BuiltinOperator::STABLEHLO_PAD, 2, 1, StablehloPad},
    {BuiltinOperator::STABLEHLO_REDUCE_WINDOW, 2, 1, StablehloReduceWindow},
};

constexpr CustomOperatorRow kCustomRows[] = {
    {"MaxPoolingWithArgmax2D", {BuiltinOperator::CUSTOM, 1, 2, MaxPoolingWithArgmax}},
    {"MaxUnpooling2D", {BuiltinOperator::CUSTOM, 2, 1, MaxUnpooling}},
};

}  // namespace

absl::Span<const OperatorRow> WindowOperators() { return kRows; }
absl::Span<const CustomOperatorRow> CustomWindowOperators() { return kCustomRows; }

}  // namespace permafrost

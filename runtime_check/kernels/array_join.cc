// Ops that concatenate or split tensors: Pack, Unpack, Concat, Split.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/moving_kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// Adds the copy of one block, outer x own elements, of a tensor that has outer x whole elements.
void AddBlock(CopyList* copies, int from, int64_t from_offset, int64_t from_size, int to, int64_t to_offset,
              int64_t to_size, int64_t outer, int64_t own) {
  copies->Add(from, from_offset, to, to_offset, {{outer, from_size, to_size}, {own, 1, 1}});
}

absl::Status PreparePack(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t attr, IntAttr(context->node(), "axis"));
  const int count = context->num_inputs();
  if (count < 1) return absl::InvalidArgumentError("no inputs, expected at least 1");
  const Shape& first = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(attr, first.rank() + 1));
  for (int i = 1; i < count; ++i) {
    if (context->input_shape(i) != first) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(),
                                                     ", expected ", first.ToString()));
    }
  }
  Shape output;
  for (int d = 0; d <= first.rank(); ++d) {
    if (d == axis) output.AddDim(count);
    if (d < first.rank()) output.AddDim(first.dim(d));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  const int64_t outer = ProductOfDims(first, 0, axis);
  const int64_t inner = ProductOfDims(first, axis, first.rank());
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  if (output.num_elements() > 0) {
    for (int i = 0; i < count; ++i) AddBlock(copies.get(), i, 0, inner, 0, i * inner, count * inner, outer, inner);
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareUnpack(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t attr, IntAttr(context->node(), "axis"));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(attr, input.rank()));
  const int count = context->num_outputs();
  if (input.dim(axis) != count) {
    return absl::InvalidArgumentError(absl::StrCat("the input has the shape ", input.ToString(), ", expected ", count,
                                                   " at axis ", axis, ", as many as there are outputs"));
  }
  const int64_t outer = ProductOfDims(input, 0, axis);
  const int64_t inner = ProductOfDims(input, axis + 1, input.rank());
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    if (d != axis) output.AddDim(input.dim(d));
  }
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  for (int i = 0; i < count; ++i) {
    context->SetOutputShape(i, output);
    if (input.num_elements() > 0) AddBlock(copies.get(), 0, i * inner, count * inner, i, 0, inner, outer, inner);
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

// Concatenates the inputs [first, first + count) along an axis.
absl::Status PrepareConcatWith(PrepareContext* context, int first, int count, int64_t given_axis) {
  if (count < 1) return absl::InvalidArgumentError("no inputs to concatenate, expected at least 1");
  const Shape& model = context->input_shape(first);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given_axis, model.rank()));
  PF_ASSIGN_OR_RETURN(const Shape output, ShapeOfJoined(context, first, count, axis));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(first)));
  if (output.num_elements() == 0) count = 0;
  const int64_t outer = ProductOfDims(output, 0, axis);
  const int64_t inner = ProductOfDims(output, axis + 1, output.rank());
  int64_t offset = 0;
  for (int i = first; i < first + count; ++i) {
    const int64_t own = context->input_shape(i).dim(axis) * inner;
    AddBlock(copies.get(), i, 0, own, 0, offset, output.dim(axis) * inner, outer, own);
    offset += own;
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareConcat(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t axis, IntegerInput(context, 0));
  return PrepareConcatWith(context, 1, context->num_inputs() - 1, axis);
}

absl::Status PrepareConcatV2(PrepareContext* context) {
  if (context->num_inputs() < 2) return absl::InvalidArgumentError("no inputs to concatenate, expected at least 1");
  PF_ASSIGN_OR_RETURN(int64_t axis, IntegerInput(context, context->num_inputs() - 1));
  return PrepareConcatWith(context, 0, context->num_inputs() - 1, axis);
}

// Splits input `value` along an axis into outputs of these sizes, whose sum is the size of the axis.
absl::Status PrepareSplitWith(PrepareContext* context, int value, int axis, absl::Span<const int64_t> sizes) {
  const Shape& input = context->input_shape(value);
  const int64_t outer = ProductOfDims(input, 0, axis);
  const int64_t inner = ProductOfDims(input, axis + 1, input.rank());
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(value)));
  const bool is_empty = input.num_elements() == 0;
  int64_t offset = 0;
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
    Shape output = input;
    output.set_dim(axis, sizes[i]);
    context->SetOutputShape(i, std::move(output));
    if (is_empty) continue;
    const int64_t own = sizes[i] * inner;
    AddBlock(copies.get(), value, offset, input.dim(axis) * inner, i, 0, own, outer, own);
    offset += own;
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareSplit(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t given_axis, IntegerInput(context, 0));
  const Shape& input = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given_axis, input.rank()));
  const int count = context->num_outputs();
  if (count < 1 || input.dim(axis) % count != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the input has the shape ", input.ToString(),
                                                   ", expected a multiple of ", count, " at axis ", axis));
  }
  return PrepareSplitWith(context, 1, axis, std::vector<int64_t>(count, input.dim(axis) / count));
}

absl::Status PrepareSplitV(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, IntegerVectorInput(context, 1));
  PF_ASSIGN_OR_RETURN(int64_t given_axis, IntegerInput(context, 2));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given_axis, input.rank()));
  if (static_cast<int>(sizes.size()) != context->num_outputs()) {
    return absl::InvalidArgumentError(absl::StrCat("'size_splits' has ", sizes.size(), " elements, expected ",
                                                   context->num_outputs(), ", as many as there are outputs"));
  }
  int64_t rest = input.dim(axis);
  int64_t* unknown = nullptr;
  bool fits = true;
  for (int64_t& size : sizes) {
    if (size == -1 && unknown == nullptr) {
      unknown = &size;
    } else if (size < 0 || size > rest) {
      fits = false;
    } else {
      rest -= size;
    }
  }
  if (unknown != nullptr) {
    *unknown = rest;
    rest = 0;
  }
  if (!fits || rest != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'size_splits' does not add up to ", input.dim(axis), ", the size of the input at axis ", axis));
  }
  return PrepareSplitWith(context, 0, axis, sizes);
}

}  // namespace

DEFINE_KERNEL(Pack) { return MovingKernel<PreparePack>("the inputs stacked along a new axis"); }

DEFINE_KERNEL(Unpack) {
  return MovingKernel<PrepareUnpack>("the slices of the input along an axis, one for each output");
}

DEFINE_KERNEL(Concat) { return MovingKernel<PrepareConcat>("the inputs concatenated along an axis"); }

DEFINE_KERNEL(ConcatV2) { return MovingKernel<PrepareConcatV2>("the inputs concatenated along an axis"); }

DEFINE_KERNEL(Split) { return MovingKernel<PrepareSplit>("equal parts of the input along an axis"); }

DEFINE_KERNEL(SplitV) { return MovingKernel<PrepareSplitV>("parts of the input, of given sizes, along an axis"); }

}  // namespace permafrost

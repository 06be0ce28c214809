// Tensor arrays, which ops share by reference. A scalar `flow`, passed from op to op, orders the accesses.
#include "runtime_check/kernels/tensor_array.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

using ArrayRef = std::shared_ptr<TensorArray>;

absl::StatusOr<ArrayRef> InputArray(const ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ArrayRef array, ObjectInput<TensorArray>(context, 0));
  if (array->is_closed) return absl::InvalidArgumentError("the tensor array is closed");
  return array;
}

absl::Status ComputeNew(ComputeContext* context) {
  auto array = std::make_shared<TensorArray>();
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(array->dtype, TypeAttr(node, "dtype"));
  PF_ASSIGN_OR_RETURN(array->shape, ShapeAttr(node, "element_shape"));
  PF_ASSIGN_OR_RETURN(array->is_dynamic, BoolAttr(node, "dynamic_size"));
  PF_ASSIGN_OR_RETURN(array->clears_after_read, BoolAttr(node, "clear_after_read"));
  PF_ASSIGN_OR_RETURN(array->has_one_shape, BoolAttr(node, "identical_element_shapes"));
  PF_ASSIGN_OR_RETURN(const int64_t size, IntegerOf(context->input_at(0)));
  PF_RETURN_IF_ERROR(array->elements.Resize(size, &context->budget()));
  array->cleared.resize(static_cast<size_t>(size), false);
  context->output_objects(0).front() = std::move(array);
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape()));
  *context->output<float>(1) = 0;
  return absl::OkStatus();
}

absl::Status GiveFlow(ComputeContext* context) {
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape()));
  const int flow = context->num_inputs() - 1;
  *context->output<float>(0) = context->input_shape(flow).num_elements() > 0 ? *context->input<float>(flow) : 0;
  return absl::OkStatus();
}

absl::Status ComputeWrite(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  PF_ASSIGN_OR_RETURN(const int64_t index, IntegerOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(ElementRef element, StoreValue(context->input_at(2), &context->budget()));
  PF_RETURN_IF_ERROR(PutElement(&context->budget(), array.get(), index, std::move(element)));
  return GiveFlow(context);
}

absl::Status ComputeRead(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  PF_ASSIGN_OR_RETURN(const int64_t index, IntegerOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(const ElementRef element, GetElement(array.get(), index));
  return Annotate(GiveElement(context, 0, element, array->shape), absl::StrCat("element ", index));
}

absl::Status ComputeGather(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeAttr(context->node(), "element_shape"));
  PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, array->shape));
  std::vector<ElementRef> chosen;
  for (const int64_t index : indices) {
    PF_ASSIGN_OR_RETURN(chosen.emplace_back(), GetElement(array.get(), index));
  }
  PF_ASSIGN_OR_RETURN(shape, CommonShape(shape, chosen));
  return GiveStack(context, 0, chosen, shape);
}

absl::Status ComputeScatter(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  const Value& value = context->input_at(2);
  if (value.shape.rank() == 0 || value.shape.dim(0) != static_cast<int64_t>(indices.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", indices.size(), " indices for a tensor of shape ", value.shape.ToString()));
  }
  const Shape shape(value.shape.dims().subspan(1));
  const int64_t row = shape.num_elements();
  for (size_t i = 0; i < indices.size(); ++i) {
    PF_ASSIGN_OR_RETURN(ElementRef element,
                        StoreRows(value, static_cast<int64_t>(i) * row, row, shape, &context->budget()));
    PF_RETURN_IF_ERROR(PutElement(&context->budget(), array.get(), indices[i], std::move(element)));
  }
  return GiveFlow(context);
}

absl::Status ComputeSplit(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  const Value& value = context->input_at(1);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, IntegersOf(context->input_at(2)));
  if (value.shape.rank() == 0) return absl::InvalidArgumentError("found a scalar, expected at least one axis");
  Shape shape = value.shape;
  const int64_t row = Shape(shape.dims().subspan(1)).num_elements();
  int64_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > value.shape.dim(0) - at) {
      return absl::InvalidArgumentError("the lengths do not add up to the first dimension");
    }
    shape.set_dim(0, lengths[i]);
    PF_ASSIGN_OR_RETURN(ElementRef element, StoreRows(value, at * row, lengths[i] * row, shape, &context->budget()));
    PF_RETURN_IF_ERROR(PutElement(&context->budget(), array.get(), static_cast<int64_t>(i), std::move(element)));
    at += lengths[i];
  }
  if (at != value.shape.dim(0)) {
    return absl::InvalidArgumentError("the lengths do not add up to the first dimension");
  }
  return GiveFlow(context);
}

absl::Status ComputeConcat(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeAttr(context->node(), "element_shape_except0"));
  std::vector<ElementRef> all;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < array->elements.size(); ++i) {
    PF_ASSIGN_OR_RETURN(all.emplace_back(), GetElement(array.get(), i));
    if (all.back() == nullptr) {
      if (!array->shape.IsFullyKnown() || array->shape.rank() == 0) {
        return absl::InvalidArgumentError(absl::StrCat("element ", i, " is not set and its shape is not known"));
      }
      lengths.push_back(array->shape.dim(0));
      PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, Shape(array->shape.dims().subspan(1))));
      continue;
    }
    const Shape& full = all.back()->tensor.shape();
    if (full.rank() == 0) return absl::InvalidArgumentError(absl::StrCat("element ", i, " is a scalar"));
    lengths.push_back(full.dim(0));
    PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, Shape(full.dims().subspan(1))));
  }
  if (all.empty() && array->shape.has_rank() && array->shape.rank() > 0) {
    PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, Shape(array->shape.dims().subspan(1))));
  }
  return GiveConcat(context, 0, all, shape, lengths);
}

absl::Status ComputeSize(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, InputArray(context));
  if (array->elements.size() > INT32_MAX) return absl::InvalidArgumentError("the size exceeds int32");
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape()));
  *context->output<int32_t>(0) = static_cast<int32_t>(array->elements.size());
  return absl::OkStatus();
}

absl::Status ComputeClose(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ArrayRef array, ObjectInput<TensorArray>(context, 0));
  array->is_closed = true;
  array->elements = ElementStore();
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(TensorArrayV3) {
  return Kernel("an array of the given number of unset elements")
      .UsesState()
      .Prepare(PrepareObjects)
      .Compute(ComputeNew);
}
DEFINE_KERNEL(TensorArrayWriteV3) {
  return Kernel("array[index] = value").UsesState().Prepare(PrepareObjects).Compute(ComputeWrite);
}
DEFINE_KERNEL(TensorArrayReadV3) {
  return Kernel("array[index]; zeros if it is not set").UsesState().Prepare(PrepareObjects).Compute(ComputeRead);
}
DEFINE_KERNEL(TensorArrayGatherV3) {
  return Kernel("the elements at the indices, stacked along a new first axis")
      .UsesState()
      .Prepare(PrepareObjects)
      .Compute(ComputeGather);
}
DEFINE_KERNEL(TensorArrayScatterV3) {
  return Kernel("array[indices[i]] = value[i]").UsesState().Prepare(PrepareObjects).Compute(ComputeScatter);
}
DEFINE_KERNEL(TensorArraySplitV3) {
  return Kernel("value split into array elements of the given lengths")
      .UsesState()
      .Prepare(PrepareObjects)
      .Compute(ComputeSplit);
}
DEFINE_KERNEL(TensorArrayConcatV3) {
  return Kernel("the elements concatenated, and their lengths")
      .UsesState()
      .Prepare(PrepareObjects)
      .Compute(ComputeConcat);
}
DEFINE_KERNEL(TensorArraySizeV3) {
  return Kernel("the number of elements of the array").UsesState().Prepare(PrepareObjects).Compute(ComputeSize);
}
DEFINE_KERNEL(TensorArrayCloseV3) {
  return Kernel("nothing; releases the elements of the array")
      .UsesState()
      .Prepare(PrepareObjects)
      .Compute(ComputeClose);
}

}  // namespace permafrost

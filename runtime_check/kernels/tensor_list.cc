// Lists of tensors as values: each op returns a new list and does not change its input.
#include "runtime_check/kernels/tensor_list.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

using ListRef = std::shared_ptr<TensorList>;

absl::StatusOr<ListRef> InputList(const ComputeContext* context) { return ObjectInput<TensorList>(context, 0); }

void GiveList(ComputeContext* context, ListRef list) { context->output_objects(0).front() = std::move(list); }

// Returns the list of input 0 for modification: the list itself if there is no other reference, else a copy that shares
// the elements.
absl::StatusOr<ListRef> ListToChange(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, InputList(context));
  constexpr long kInputAndThis = 2;
  if (context->OwnsInput(0) && list.use_count() == kInputAndThis) return list;
  auto copy = std::make_shared<TensorList>();
  copy->dtype = list->dtype;
  copy->shape = list->shape;
  copy->most = list->most;
  PF_ASSIGN_OR_RETURN(copy->elements, list->elements.Copy(&context->budget()));
  return copy;
}

// Returns a new list with the element type of the node.
absl::StatusOr<ListRef> NewList(ComputeContext* context, int shape_input) {
  auto list = std::make_shared<TensorList>();
  PF_ASSIGN_OR_RETURN(list->dtype, TypeAttr(context->node(), "element_dtype"));
  absl::StatusOr<Shape> shape = ShapeFromValue(context->input_at(shape_input));
  PF_RETURN_IF_ERROR(Annotate(shape.status(), "the shape of elements"));
  list->shape = *std::move(shape);
  return list;
}

Shape WithoutFirst(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

// Stores the rows of a value at the positions that `index` returns.
template <typename Index>
absl::Status SetRows(ComputeContext* context, TensorList* list, const Value& rows, int64_t count, Index index) {
  if (rows.shape.rank() == 0) return absl::InvalidArgumentError("found a scalar, expected at least one axis");
  const Shape shape = WithoutFirst(rows.shape);
  PF_RETURN_IF_ERROR(CheckElement(*list, shape, rows.dtype));
  const int64_t size = shape.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    PF_ASSIGN_OR_RETURN(ElementRef element, StoreRows(rows, i * size, size, shape, &context->budget()));
    list->elements.Set(index(i), std::move(element));
  }
  return absl::OkStatus();
}

absl::Status ComputeEmpty(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, NewList(context, 0));
  PF_ASSIGN_OR_RETURN(list->most, IntegerOf(context->input_at(1)));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status ComputeReserve(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, NewList(context, 0));
  PF_ASSIGN_OR_RETURN(const int64_t size, IntegerOf(context->input_at(1)));
  PF_RETURN_IF_ERROR(list->elements.Resize(size, &context->budget()));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status ComputeFromTensor(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, NewList(context, 1));
  const Value& rows = context->input_at(0);
  const int64_t count = rows.shape.rank() == 0 ? 0 : rows.shape.dim(0);
  PF_RETURN_IF_ERROR(list->elements.Resize(count, &context->budget()));
  PF_RETURN_IF_ERROR(SetRows(context, list.get(), rows, count, [](int64_t i) { return i; }));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

// Inputs of Scatter: tensor, indices, element_shape, and in V2 num_elements (-1: determined by the indices).
absl::Status ComputeScatter(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, NewList(context, 2));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  const Value& rows = context->input_at(0);
  if (rows.shape.rank() == 0 || rows.shape.dim(0) != static_cast<int64_t>(indices.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", indices.size(), " indices for a tensor of shape ", rows.shape.ToString()));
  }
  int64_t size = -1;
  if (context->num_inputs() > 3) {
    PF_ASSIGN_OR_RETURN(size, IntegerOf(context->input_at(3)));
  }
  if (size == -1) size = indices.empty() ? 0 : *std::max_element(indices.begin(), indices.end()) + 1;
  PF_RETURN_IF_ERROR(list->elements.Resize(size, &context->budget()));
  for (const int64_t index : indices) PF_RETURN_IF_ERROR(CheckIndex(index, size));
  PF_RETURN_IF_ERROR(SetRows(context, list.get(), rows, rows.shape.dim(0),
                             [&](int64_t i) { return indices[static_cast<size_t>(i)]; }));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status ComputeGetItem(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ListRef list, InputList(context));
  PF_ASSIGN_OR_RETURN(const int64_t index, IntegerOf(context->input_at(1)));
  PF_RETURN_IF_ERROR(CheckIndex(index, list->elements.size()));
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromValue(context->input_at(2)));
  PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list->shape));
  const ElementRef& element = list->elements[index];
  if (element == nullptr && !shape.IsFullyKnown()) {
    PF_ASSIGN_OR_RETURN(shape, CommonShape(shape, list->All()));
  }
  return GiveElement(context, 0, element, shape);
}

absl::Status ComputeSetItem(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t index, IntegerOf(context->input_at(1)));
  const Value& item = context->input_at(2);
  PF_ASSIGN_OR_RETURN(ListRef list, ListToChange(context));
  PF_RETURN_IF_ERROR(CheckElement(*list, item.shape, item.dtype));
  PF_ASSIGN_OR_RETURN(const bool resize, BoolAttr(context->node(), "resize_if_index_out_of_bounds"));
  if (resize && index >= list->elements.size()) {
    PF_RETURN_IF_ERROR(list->elements.Resize(index + 1, &context->budget()));
  }
  PF_RETURN_IF_ERROR(CheckIndex(index, list->elements.size()));
  PF_ASSIGN_OR_RETURN(ElementRef element, StoreValue(item, &context->budget()));
  list->elements.Set(index, std::move(element));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status ComputePushBack(ComputeContext* context) {
  const Value& item = context->input_at(1);
  PF_ASSIGN_OR_RETURN(ListRef list, ListToChange(context));
  PF_RETURN_IF_ERROR(CheckElement(*list, item.shape, item.dtype));
  const int64_t size = list->elements.size();
  if (list->most >= 0 && size >= list->most) {
    return absl::InvalidArgumentError(absl::StrCat("the list is full: it has ", size, " elements"));
  }
  PF_ASSIGN_OR_RETURN(ElementRef element, StoreValue(item, &context->budget()));
  PF_RETURN_IF_ERROR(list->elements.Resize(size + 1, &context->budget()));
  list->elements.Set(size, std::move(element));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status ComputePopBack(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, ListToChange(context));
  const int64_t size = list->elements.size();
  if (size == 0) return absl::InvalidArgumentError("the list is empty");
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromValue(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list->shape));
  const ElementRef last = list->elements[size - 1];
  PF_RETURN_IF_ERROR(list->elements.Resize(size - 1, &context->budget()));
  GiveList(context, std::move(list));
  return GiveElement(context, 1, last, shape);
}

absl::Status ComputeResize(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t size, IntegerOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(ListRef list, ListToChange(context));
  PF_RETURN_IF_ERROR(list->elements.Resize(size, &context->budget()));
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status ComputeStack(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ListRef list, InputList(context));
  PF_ASSIGN_OR_RETURN(const int64_t expected, IntAttr(context->node(), "num_elements"));
  if (expected >= 0 && expected != list->elements.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found a list of ", list->elements.size(), " elements, expected ", expected));
  }
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromValue(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list->shape));
  const std::vector<ElementRef> all = list->All();
  PF_ASSIGN_OR_RETURN(shape, CommonShape(shape, all));
  return GiveStack(context, 0, all, shape);
}

absl::Status ComputeGather(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ListRef list, InputList(context));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromValue(context->input_at(2)));
  PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list->shape));
  PF_ASSIGN_OR_RETURN(shape, CommonShape(shape, list->All()));
  std::vector<ElementRef> chosen;
  for (const int64_t index : indices) {
    PF_RETURN_IF_ERROR(CheckIndex(index, list->elements.size()));
    chosen.push_back(list->elements[index]);
  }
  return GiveStack(context, 0, chosen, shape);
}

// V1 has the shape as an attribute. V2 has the inputs element_shape and leading_dims, the lengths of unset elements.
absl::Status ComputeConcat(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ListRef list, InputList(context));
  Shape shape;
  std::vector<int64_t> lengths;
  if (context->num_inputs() > 1) {
    PF_ASSIGN_OR_RETURN(shape, ShapeFromValue(context->input_at(1)));
    PF_ASSIGN_OR_RETURN(lengths, IntegersOf(context->input_at(2)));
  } else {
    PF_ASSIGN_OR_RETURN(shape, ShapeAttr(context->node(), "element_shape"));
  }
  // The first axis of the shape is ignored: each element has its own length.
  const auto without_first = [](const Shape& full) -> absl::StatusOr<Shape> {
    if (!full.has_rank()) return full;
    if (full.rank() == 0) return absl::InvalidArgumentError("scalars have no first axis");
    return WithoutFirst(full);
  };
  PF_ASSIGN_OR_RETURN(shape, without_first(shape));
  PF_ASSIGN_OR_RETURN(const Shape of_list, without_first(list->shape));
  PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, of_list));
  const std::vector<ElementRef> all = list->All();
  for (const ElementRef& element : all) {
    if (element == nullptr) continue;
    PF_ASSIGN_OR_RETURN(const Shape row, without_first(element->tensor.shape()));
    PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, row));
  }
  return GiveConcat(context, 0, all, shape, lengths);
}

absl::Status ComputeSplit(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(ListRef list, NewList(context, 1));
  const Value& value = context->input_at(0);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, IntegersOf(context->input_at(2)));
  if (value.shape.rank() == 0) return absl::InvalidArgumentError("found a scalar, expected at least one axis");
  PF_RETURN_IF_ERROR(list->elements.Resize(static_cast<int64_t>(lengths.size()), &context->budget()));
  Shape shape = value.shape;
  const int64_t row = WithoutFirst(shape).num_elements();
  int64_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > value.shape.dim(0) - at) {
      return absl::InvalidArgumentError("the lengths do not add up to the first dimension");
    }
    shape.set_dim(0, lengths[i]);
    PF_RETURN_IF_ERROR(CheckElement(*list, shape, value.dtype));
    PF_ASSIGN_OR_RETURN(ElementRef element, StoreRows(value, at * row, lengths[i] * row, shape, &context->budget()));
    list->elements.Set(static_cast<int64_t>(i), std::move(element));
    at += lengths[i];
  }
  if (at != value.shape.dim(0)) {
    return absl::InvalidArgumentError("the lengths do not add up to the first dimension");
  }
  GiveList(context, std::move(list));
  return absl::OkStatus();
}

absl::Status PrepareLength(PrepareContext* context) {
  context->SetOutputShape(0, Shape());
  return absl::OkStatus();
}

absl::Status ComputeLength(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ListRef list, InputList(context));
  if (list->elements.size() > INT32_MAX) return absl::InvalidArgumentError("the length exceeds int32");
  *context->output<int32_t>(0) = static_cast<int32_t>(list->elements.size());
  return absl::OkStatus();
}

absl::Status ComputeElementShape(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const ListRef list, InputList(context));
  const Shape& shape = list->shape;
  std::vector<int64_t> dims = {-1};
  if (shape.has_rank()) dims.assign(shape.dims().begin(), shape.dims().end());
  PF_RETURN_IF_ERROR(
      context->AllocateOutput(0, shape.has_rank() ? Shape({static_cast<int64_t>(dims.size())}) : Shape()));
  DispatchOn<int32_t, int64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::transform(dims.begin(), dims.end(), context->output<T>(0), [](int64_t dim) { return static_cast<T>(dim); });
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(EmptyTensorList) { return Kernel("an empty list").Prepare(PrepareObjects).Compute(ComputeEmpty); }
DEFINE_KERNEL(TensorListReserve) {
  return Kernel("a list of the given number of unset elements").Prepare(PrepareObjects).Compute(ComputeReserve);
}
DEFINE_KERNEL(TensorListFromTensor) {
  return Kernel("a list of the rows of tensor").Prepare(PrepareObjects).Compute(ComputeFromTensor);
}
DEFINE_KERNEL(TensorListScatter) {
  return Kernel("a list with the rows of tensor at the given indices").Prepare(PrepareObjects).Compute(ComputeScatter);
}
DEFINE_KERNEL(TensorListScatterV2) {
  return Kernel("a list with the rows of tensor at the given indices").Prepare(PrepareObjects).Compute(ComputeScatter);
}
DEFINE_KERNEL(TensorListGetItem) {
  return Kernel("list[index]; zeros if it is not set").Prepare(PrepareObjects).Compute(ComputeGetItem);
}
DEFINE_KERNEL(TensorListSetItem) {
  return Kernel("the list with list[index] = item").Prepare(PrepareObjects).Compute(ComputeSetItem);
}
DEFINE_KERNEL(TensorListPushBack) {
  return Kernel("the list with an element appended").Prepare(PrepareObjects).Compute(ComputePushBack);
}
DEFINE_KERNEL(TensorListPopBack) {
  return Kernel("the list without its last element, and that element").Prepare(PrepareObjects).Compute(ComputePopBack);
}
DEFINE_KERNEL(TensorListResize) {
  return Kernel("the list resized to another length").Prepare(PrepareObjects).Compute(ComputeResize);
}
DEFINE_KERNEL(TensorListStack) {
  return Kernel("the elements stacked along a new first axis").Prepare(PrepareObjects).Compute(ComputeStack);
}
DEFINE_KERNEL(TensorListGather) {
  return Kernel("the elements at the indices, stacked along a new first axis")
      .Prepare(PrepareObjects)
      .Compute(ComputeGather);
}
DEFINE_KERNEL(TensorListConcat) {
  return Kernel("the elements concatenated, and their lengths").Prepare(PrepareObjects).Compute(ComputeConcat);
}
DEFINE_KERNEL(TensorListConcatV2) {
  return Kernel("the elements concatenated, and their lengths").Prepare(PrepareObjects).Compute(ComputeConcat);
}
DEFINE_KERNEL(TensorListSplit) {
  return Kernel("tensor split into list elements of the given lengths").Prepare(PrepareObjects).Compute(ComputeSplit);
}
DEFINE_KERNEL(TensorListLength) {
  return Kernel("the number of elements of the list").Prepare(PrepareLength).Compute(ComputeLength);
}
DEFINE_KERNEL(TensorListElementShape) {
  return Kernel("the shape of the elements; -1 for unknown dimensions")
      .Prepare(PrepareObjects)
      .Compute(ComputeElementShape);
}

}  // namespace permafrost

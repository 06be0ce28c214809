// Implements copies between values and stored elements.
#include "runtime_check/kernels/element_store.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// Writes `count` elements of a stored tensor to position `at` of an output; zeros for a null one.
void Write(const ElementRef& element, int64_t count, Value* output, int64_t at) {
  if (output->strings != nullptr) {
    if (element == nullptr) return;
    const std::vector<std::string>& from = element->tensor.strings();
    std::copy(from.begin(), from.end(), output->strings->begin() + at);
    return;
  }
  const auto size = static_cast<int64_t>(SizeOf(output->dtype));
  if (count == 0 || size == 0) return;  // Objects are initially null.
  char* to = output->data + at * size;
  if (element == nullptr) {
    std::memset(to, 0, static_cast<size_t>(count * size));
  } else {
    std::memcpy(to, element->tensor.bytes().data(), static_cast<size_t>(count * size));
  }
}

// Allocates output i for elements of a store. References to objects are no elements, since their output has no memory.
absl::Status AllocateElements(ComputeContext* context, int i, Shape shape) {
  if (HoldsObjects(context->output_type(i))) {
    return absl::UnimplementedError(absl::StrCat("elements of type ", DTypeName(context->output_type(i))));
  }
  return context->AllocateOutput(i, std::move(shape));
}

absl::Status CheckType(const ElementRef& element, DType expected) {
  if (element == nullptr || element->tensor.dtype() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the elements are ", DTypeName(element->tensor.dtype()), ", expected ", DTypeName(expected)));
}

absl::Status RequireKnown(const Shape& shape) {
  if (shape.IsFullyKnown()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an element that is not set has the shape ", shape.ToString(), ", which is not fully known"));
}

}  // namespace

absl::StatusOr<ElementStore> ElementStore::Copy(MemoryBudget* budget) const {
  ElementStore copy;
  PF_RETURN_IF_ERROR(copy.Resize(size(), budget));
  copy.elements_ = elements_;
  return copy;
}

absl::Status ElementStore::Resize(int64_t size, MemoryBudget* budget) {
  if (size < 0) return absl::InvalidArgumentError(absl::StrCat("found the size ", size, ", expected 0 or more"));
  if (size > reserved_) {
    if (size > INT64_MAX / 64) return absl::ResourceExhaustedError(absl::StrCat("a list of ", size, " elements"));
    const int64_t wanted = std::max(size, reserved_ + reserved_ / 2);
    PF_ASSIGN_OR_RETURN(Reservation more,
                        Reservation::Take(budget, (wanted - reserved_) * static_cast<int64_t>(sizeof(ElementRef)),
                                          absl::StrCat("a list of ", size, " elements")));
    reservations_.push_back(std::move(more));
    elements_.reserve(static_cast<size_t>(wanted));
    reserved_ = wanted;
  }
  elements_.resize(static_cast<size_t>(size));
  return absl::OkStatus();
}

absl::StatusOr<ElementRef> StoreValue(const Value& value, MemoryBudget* budget) {
  return StoreRows(value, 0, value.shape.num_elements(), value.shape, budget);
}

absl::StatusOr<ElementRef> StoreRows(const Value& value, int64_t row, int64_t count, const Shape& shape,
                                     MemoryBudget* budget) {
  auto element = std::make_shared<StoredElement>();
  if (value.strings != nullptr) {
    PF_ASSIGN_OR_RETURN(element->reservation,
                        Reservation::Take(budget, count * static_cast<int64_t>(sizeof(std::string)), "an element"));
    const auto first = value.strings->begin() + row;
    element->tensor = Tensor::FromStrings(shape, std::vector<std::string>(first, first + count));
    return ElementRef(std::move(element));
  }
  const auto size = static_cast<int64_t>(SizeOf(value.dtype));
  if (size == 0) {
    return absl::UnimplementedError(absl::StrCat("elements of type ", DTypeName(value.dtype)));
  }
  PF_ASSIGN_OR_RETURN(element->reservation, Reservation::Take(budget, count * size, "an element"));
  char* data;
  PF_ASSIGN_OR_RETURN(element->tensor, Tensor::Allocate(value.dtype, shape, &data));
  if (count > 0) std::memcpy(data, value.data + row * size, static_cast<size_t>(count * size));
  return ElementRef(std::move(element));
}

absl::Status GiveElement(ComputeContext* context, int i, const ElementRef& element, const Shape& shape) {
  PF_RETURN_IF_ERROR(CheckType(element, context->output_at(i).dtype));
  if (element == nullptr) PF_RETURN_IF_ERROR(RequireKnown(shape));
  PF_RETURN_IF_ERROR(AllocateElements(context, i, element == nullptr ? shape : element->tensor.shape()));
  Value& output = context->output_at(i);
  Write(element, output.shape.num_elements(), &output, 0);
  return absl::OkStatus();
}

absl::Status GiveStack(ComputeContext* context, int i, absl::Span<const ElementRef> elements, const Shape& shape) {
  PF_RETURN_IF_ERROR(RequireKnown(shape));
  Shape stacked({static_cast<int64_t>(elements.size())});
  for (const int64_t dim : shape.dims()) stacked.AddDim(dim);
  for (const ElementRef& element : elements) PF_RETURN_IF_ERROR(CheckType(element, context->output_at(i).dtype));
  PF_RETURN_IF_ERROR(stacked.CheckedNumElements().status());
  PF_RETURN_IF_ERROR(AllocateElements(context, i, std::move(stacked)));
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  for (size_t j = 0; j < elements.size(); ++j) {
    Write(elements[j], count, &context->output_at(i), static_cast<int64_t>(j) * count);
  }
  return absl::OkStatus();
}

absl::Status GiveConcat(ComputeContext* context, int i, absl::Span<const ElementRef> elements, const Shape& shape,
                        absl::Span<const int64_t> lengths_of_unset) {
  PF_RETURN_IF_ERROR(RequireKnown(shape));
  PF_ASSIGN_OR_RETURN(const int64_t row, shape.CheckedNumElements());
  std::vector<int64_t> lengths;
  int64_t total = 0;
  for (size_t j = 0; j < elements.size(); ++j) {
    PF_RETURN_IF_ERROR(CheckType(elements[j], context->output_at(i).dtype));
    int64_t length = j < lengths_of_unset.size() ? lengths_of_unset[j] : 0;
    if (elements[j] != nullptr) {
      if (elements[j]->tensor.shape().rank() == 0) {
        return absl::InvalidArgumentError(absl::StrCat("element ", j, " is a scalar, which has no first axis"));
      }
      length = elements[j]->tensor.shape().dim(0);
    }
    if (length < 0 || __builtin_add_overflow(total, length, &total)) {
      return absl::InvalidArgumentError(absl::StrCat("element ", j, " has the length ", length));
    }
    lengths.push_back(length);
  }
  Shape joined({total});
  for (const int64_t dim : shape.dims()) joined.AddDim(dim);
  PF_RETURN_IF_ERROR(joined.CheckedNumElements().status());
  PF_RETURN_IF_ERROR(AllocateElements(context, i, std::move(joined)));
  int64_t at = 0;
  for (size_t j = 0; j < elements.size(); ++j) {
    Write(elements[j], lengths[j] * row, &context->output_at(i), at);
    at += lengths[j] * row;
  }
  PF_RETURN_IF_ERROR(context->AllocateOutput(i + 1, Shape({static_cast<int64_t>(lengths.size())})));
  std::copy(lengths.begin(), lengths.end(), context->output<int64_t>(i + 1));
  return absl::OkStatus();
}

absl::StatusOr<Shape> CommonShape(Shape known, absl::Span<const ElementRef> elements) {
  for (const ElementRef& element : elements) {
    if (element == nullptr) continue;
    PF_ASSIGN_OR_RETURN(known, MergeShapes(known, element->tensor.shape()));
  }
  return known;
}

absl::StatusOr<Shape> ShapeFromValue(const Value& value) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(value));
  if (value.shape.rank() == 0) {
    if (dims[0] == -1) return Shape::UnknownRank();
    return absl::InvalidArgumentError(absl::StrCat("found the scalar ", dims[0], " for a shape, expected -1"));
  }
  if (value.shape.rank() > 1) return absl::InvalidArgumentError("a shape of more than one axis");
  for (const int64_t dim : dims) {
    if (dim < -1) return absl::InvalidArgumentError(absl::StrCat("found the dimension ", dim));
  }
  return Shape(dims);
}

absl::StatusOr<std::vector<int64_t>> IntegersOf(const Value& value) {
  std::vector<int64_t> integers;
  const bool known = DispatchOn<int32_t, int64_t>(value.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = reinterpret_cast<const T*>(value.data);
    integers.assign(data, data + value.shape.num_elements());
  });
  if (known) return integers;
  return absl::InvalidArgumentError(absl::StrCat("found ", DTypeName(value.dtype), ", expected int32 or int64"));
}

absl::StatusOr<int64_t> IntegerOf(const Value& value) {
  if (value.shape.num_elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("found the shape ", value.shape.ToString(), ", expected a scalar"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> integers, IntegersOf(value));
  return integers[0];
}

absl::Status CheckIndex(int64_t index, int64_t size) {
  if (index >= 0 && index < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found the index ", index, " among ", size, " elements"));
}

absl::Status PrepareObjects(PrepareContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (HoldsObjects(context->output_type(i))) {
      context->SetOutputShape(i, Shape());
    } else {
      context->OutputShapeDependsOnValues(i);
    }
  }
  return absl::OkStatus();
}

}  // namespace permafrost

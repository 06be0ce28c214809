// Tensor arrays, which TensorArray ops and fused loops share by reference.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_ARRAY_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_ARRAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/resources/runtime_object.h"

namespace permafrost {

struct TensorArray : RuntimeObject {
  static constexpr absl::string_view kKind = "tensor array";
  absl::string_view kind() const override { return kKind; }

  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();  // Shape of every element, as far as it is known.
  bool is_dynamic = false;
  bool clears_after_read = true;
  bool has_one_shape = false;  // The first element written determines the shape.
  bool is_closed = false;
  ElementStore elements;
  std::vector<bool> cleared;
};

// Sets an element that was not written before.
inline absl::Status PutElement(MemoryBudget* budget, TensorArray* array, int64_t index, ElementRef element) {
  if (index >= array->elements.size() && array->is_dynamic) {
    PF_RETURN_IF_ERROR(array->elements.Resize(index + 1, budget));
    array->cleared.resize(static_cast<size_t>(index) + 1, false);
  }
  PF_RETURN_IF_ERROR(CheckIndex(index, array->elements.size()));
  if (element->tensor.dtype() != array->dtype) {
    return absl::InvalidArgumentError(absl::StrCat("found an element of type ", DTypeName(element->tensor.dtype()),
                                                   ", expected ", DTypeName(array->dtype)));
  }
  const Shape& shape = element->tensor.shape();
  if (!array->shape.IsCompatibleWith(shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an element of shape ", shape.ToString(), ", expected ", array->shape.ToString()));
  }
  if (array->has_one_shape) array->shape = shape;
  if (array->elements[index] != nullptr || array->cleared[static_cast<size_t>(index)]) {
    return absl::InvalidArgumentError(absl::StrCat("element ", index, " is written for the second time"));
  }
  array->elements.Set(index, std::move(element));
  return absl::OkStatus();
}

// Returns an element, null if it is not set. Clears the element if the array requires it.
inline absl::StatusOr<ElementRef> GetElement(TensorArray* array, int64_t index) {
  PF_RETURN_IF_ERROR(CheckIndex(index, array->elements.size()));
  if (array->cleared[static_cast<size_t>(index)]) {
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " is read for the second time, while reading clears it"));
  }
  ElementRef element = array->elements[index];
  if (array->clears_after_read && element != nullptr) {
    array->elements.Set(index, nullptr);
    array->cleared[static_cast<size_t>(index)] = true;
  }
  return element;
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_ARRAY_H_

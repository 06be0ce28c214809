// Lists of tensors as values, which TensorList ops and fused loops read and make.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_LIST_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_LIST_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/resources/runtime_object.h"

namespace permafrost {

// A list is never changed while more than one reference to it exists.
struct TensorList : RuntimeObject {
  static constexpr absl::string_view kKind = "tensor list";
  absl::string_view kind() const override { return kKind; }

  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();  // Shape of every element, as far as it is known.
  int64_t most = -1;                   // Maximum size for PushBack; -1 for any.
  ElementStore elements;

  std::vector<ElementRef> All() const {
    std::vector<ElementRef> all;
    for (int64_t i = 0; i < elements.size(); ++i) all.push_back(elements[i]);
    return all;
  }
};

// Returns InvalidArgument unless the list may have an element of this type and shape.
inline absl::Status CheckElement(const TensorList& list, const Shape& shape, DType dtype) {
  if (dtype != list.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an element of type ", DTypeName(dtype), ", expected ", DTypeName(list.dtype)));
  }
  if (list.shape.IsCompatibleWith(shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("found an element of shape ", shape.ToString(), ", expected ", list.shape.ToString()));
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_TENSOR_LIST_H_

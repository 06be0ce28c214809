// Tensors that objects keep: the elements of arrays and lists, and how they get into values and out of them.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_ELEMENT_STORE_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_ELEMENT_STORE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// A tensor within the session's budget. Nobody changes one that is shared.
struct StoredElement {
  Tensor tensor;
  Reservation reservation;
};
using ElementRef = std::shared_ptr<const StoredElement>;  // Null: not set yet.

// Elements with null for those not set. The references count against the budget too.
class ElementStore {
 public:
  ElementStore() = default;
  // Shares the elements.
  absl::StatusOr<ElementStore> Copy(MemoryBudget* budget) const;

  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  const ElementRef& operator[](int64_t i) const { return elements_[static_cast<size_t>(i)]; }
  void Set(int64_t i, ElementRef element) { elements_[static_cast<size_t>(i)] = std::move(element); }
  // InvalidArgument for a negative size, ResourceExhausted beyond the budget. Growing by one costs O(1) on average.
  absl::Status Resize(int64_t size, MemoryBudget* budget);

 private:
  std::vector<ElementRef> elements_;
  std::vector<Reservation> reservations_;
  int64_t reserved_ = 0;
};

// Copies of a value, or of row `row` of it (its elements along the first axis).
absl::StatusOr<ElementRef> StoreValue(const Value& value, MemoryBudget* budget);
absl::StatusOr<ElementRef> StoreRows(const Value& value, int64_t row, int64_t count, const Shape& shape,
                                     MemoryBudget* budget);

// Allocates output i and fills it with the element; with zeros when it is null, where `shape` must be fully known.
absl::Status GiveElement(ComputeContext* context, int i, const ElementRef& element, const Shape& shape);
// The same with elements one after the other under a new first axis; `shape` is that of one, fully known.
absl::Status GiveStack(ComputeContext* context, int i, absl::Span<const ElementRef> elements, const Shape& shape);
// The same along their first axis; `shape` is that of one without the first axis. Output i + 1 gets the lengths.
absl::Status GiveConcat(ComputeContext* context, int i, absl::Span<const ElementRef> elements, const Shape& shape,
                        absl::Span<const int64_t> lengths_of_unset);

// The shape that fits `known` and all that are set. InvalidArgument when none does.
absl::StatusOr<Shape> CommonShape(Shape known, absl::Span<const ElementRef> elements);

// A shape as lists are given one: a vector of dimensions where -1 is unknown, or the scalar -1 for an unknown rank.
absl::StatusOr<Shape> ShapeFromValue(const Value& value);
// The integers of a value of type int32 or int64.
absl::StatusOr<std::vector<int64_t>> IntegersOf(const Value& value);
// The only one. InvalidArgument when there are more or fewer.
absl::StatusOr<int64_t> IntegerOf(const Value& value);

// InvalidArgument unless 0 <= index < size.
absl::Status CheckIndex(int64_t index, int64_t size);

// A Prepare function: outputs of object types are scalars, those of other types depend on values.
absl::Status PrepareObjects(PrepareContext* context);

// The object that input i holds, as a T.
template <typename T>
absl::StatusOr<std::shared_ptr<T>> ObjectInput(const ComputeContext* context, int i) {
  const Value& value = context->input_at(i);
  if (value.objects == nullptr || value.objects->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has the shape ", value.shape.ToString(), ", expected a scalar ", T::kKind));
  }
  return ObjectAs<T>(value.objects->front());
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_ELEMENT_STORE_H_

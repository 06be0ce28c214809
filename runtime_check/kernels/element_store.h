// Tensors that resource objects hold: the elements of tensor arrays and lists, and their conversion to and from values.
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

// A tensor counted against the session's memory budget. Shared elements are immutable.
struct StoredElement {
  Tensor tensor;
  Reservation reservation;
};
using ElementRef = std::shared_ptr<const StoredElement>;  // Null: not set yet.

// A list of elements, null for those not set. The references count against the budget too.
class ElementStore {
 public:
  ElementStore() = default;
  // Returns a copy that shares the elements.
  absl::StatusOr<ElementStore> Copy(MemoryBudget* budget) const;

  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  const ElementRef& operator[](int64_t i) const { return elements_[static_cast<size_t>(i)]; }
  void Set(int64_t i, ElementRef element) { elements_[static_cast<size_t>(i)] = std::move(element); }
  // Changes the number of elements. Returns InvalidArgument for a negative size, ResourceExhausted if the budget is
  // exceeded. Growing by one costs amortised O(1).
  absl::Status Resize(int64_t size, MemoryBudget* budget);

 private:
  std::vector<ElementRef> elements_;
  std::vector<Reservation> reservations_;
  int64_t reserved_ = 0;
};

// Store a copy of a value, or of `count` rows of it from `row` (elements along the first axis).
absl::StatusOr<ElementRef> StoreValue(const Value& value, MemoryBudget* budget);
absl::StatusOr<ElementRef> StoreRows(const Value& value, int64_t row, int64_t count, const Shape& shape,
                                     MemoryBudget* budget);

// Allocates output i and fills it with the element, or with zeros if the element is null. In that case `shape` must be
// fully known.
absl::Status GiveElement(ComputeContext* context, int i, const ElementRef& element, const Shape& shape);
// Allocates output i and fills it with the elements, stacked along a new first axis. `shape` is the shape of one
// element, fully known.
absl::Status GiveStack(ComputeContext* context, int i, absl::Span<const ElementRef> elements, const Shape& shape);
// Allocates output i and fills it with the elements, concatenated along their first axis. `shape` is the shape of one
// element without the first axis. Output i + 1 is set to the lengths.
absl::Status GiveConcat(ComputeContext* context, int i, absl::Span<const ElementRef> elements, const Shape& shape,
                        absl::Span<const int64_t> lengths_of_unset);

// Returns the shape compatible with `known` and all elements that are set; InvalidArgument if there is none.
absl::StatusOr<Shape> CommonShape(Shape known, absl::Span<const ElementRef> elements);

// Returns the shape in a value: a vector of dimensions, where -1 is unknown, or the scalar -1 for an unknown rank.
absl::StatusOr<Shape> ShapeFromValue(const Value& value);
// Returns the integers of a value of type int32 or int64.
absl::StatusOr<std::vector<int64_t>> IntegersOf(const Value& value);
// Returns the single integer of a value; InvalidArgument if it has more or fewer.
absl::StatusOr<int64_t> IntegerOf(const Value& value);

// Returns InvalidArgument unless 0 <= index < size.
absl::Status CheckIndex(int64_t index, int64_t size);

// A Prepare function for outputs of objects: object types are scalars, the shapes of other types depend on values.
absl::Status PrepareObjects(PrepareContext* context);

// Returns the object of type T that input i holds.
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

// Implements the interpretation of StridedSlice, with the semantics of NumPy's a[begin:end:stride, ..., newaxis, i].
#include "graph/shapes/strided_slice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost::shapes {
namespace {

constexpr int64_t kUnknown = KnownIntegers::kUnknown;
constexpr int64_t kMaskBits = 32;  // The masks are 32-bit words, so later entries cannot be masked.

bool Has(uint64_t mask, int64_t i) { return i < kMaskBits && ((mask >> i) & 1) != 0; }

int64_t Entry(const KnownIntegers* vector, int64_t i) {
  return vector == nullptr || static_cast<size_t>(i) >= vector->elements.size() ? kUnknown : vector->elements[i];
}

// Returns `value` counted from 0 and clamped to the valid starts or ends of a slice.
int64_t Clamp(int64_t value, int64_t dim, int64_t stride) {
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
  if (value < 0) value += dim;  // dim >= 0, so this cannot overflow.
  return std::min(std::max(value, low), high);
}

absl::StatusOr<SlicedDimension> SliceDimension(int64_t dim, int64_t i, const StridedSliceMasks& masks, int64_t begin,
                                               int64_t end, int64_t stride) {
  SlicedDimension sliced;
  if (stride == 0) return absl::InvalidArgumentError(absl::StrCat("strides[", i, "] is 0"));
  const bool shrinks = Has(masks.shrink_axis, i);
  if (shrinks) {
    if (stride != kUnknown && stride <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("strides[", i, "] is ", stride, ", expected 1 for a single index"));
    }
    sliced.kind = SlicedDimension::Kind::kDropped;
    sliced.count = 1;
    sliced.stride = 1;
    // As in TensorFlow, the index applies even if the begin mask has its bit.
    if (begin == kUnknown || dim < 0) return sliced;
    if (begin < -dim || begin >= dim) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", begin, " is out of bounds for a dimension of size ", dim));
    }
    sliced.begin = begin < 0 ? begin + dim : begin;
    return sliced;
  }
  sliced.stride = stride;
  if (stride == kUnknown) return sliced;
  const bool from_start = Has(masks.begin, i), to_end = Has(masks.end, i);
  if (dim < 0) {
    // Without the dimension the count is unknown.
    if (from_start && to_end && stride == 1) sliced.begin = 0;
    return sliced;
  }
  if ((!from_start && begin == kUnknown) || (!to_end && end == kUnknown)) return sliced;
  const int64_t first = from_start ? (stride > 0 ? 0 : dim - 1) : Clamp(begin, dim, stride);
  const int64_t last = to_end ? (stride > 0 ? dim : -1) : Clamp(end, dim, stride);
  sliced.begin = first;
  if (stride > 0) {
    sliced.count = last > first ? (last - first - 1) / stride + 1 : 0;
  } else {
    // Negating the smallest int64 overflows. A slice with such a stride has at most one element.
    sliced.count = last < first ? (stride == INT64_MIN ? 1 : (first - last - 1) / -stride + 1) : 0;
  }
  return sliced;
}

}  // namespace

absl::StatusOr<StridedSliceMasks> ReadStridedSliceMasks(const Node& node) {
  StridedSliceMasks masks;
  for (const auto& [name, mask] : {std::pair<absl::string_view, uint64_t*>{"begin_mask", &masks.begin},
                                   {"end_mask", &masks.end},
                                   {"ellipsis_mask", &masks.ellipsis},
                                   {"new_axis_mask", &masks.new_axis},
                                   {"shrink_axis_mask", &masks.shrink_axis}}) {
    PF_ASSIGN_OR_RETURN(const int64_t value, IntAttr(node, name));
    *mask = static_cast<uint32_t>(value);
  }
  return masks;
}

absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const Shape& input, int64_t length, const StridedSliceMasks& masks,
                                                  const KnownIntegers* begin, const KnownIntegers* end,
                                                  const KnownIntegers* strides) {
  if (length > 2 * kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the slice has ", length, " entries, expected at most ", 2 * kMaxRank));
  }
  int64_t ellipsis = -1;
  int64_t consuming = 0;  // Entries that consume one dimension of the input.
  for (int64_t i = 0; i < length; ++i) {
    if (Has(masks.ellipsis, i)) {
      if (ellipsis >= 0) return absl::InvalidArgumentError("attr 'ellipsis_mask' has two bits, expected at most one");
      ellipsis = i;
    } else if (!Has(masks.new_axis, i)) {
      ++consuming;
    }
  }
  if (consuming > input.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("the slice has entries for ", consuming,
                                                   " dimensions, but the input has the shape ", input.ToString()));
  }
  StridedSlicePlan plan;
  int at = 0;  // The next dimension of the input.
  const auto keep_whole = [&](int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      SlicedDimension whole;
      whole.count = input.dim(at++);
      whole.begin = 0;
      whole.stride = 1;
      plan.push_back(whole);
    }
  };
  for (int64_t i = 0; i < length; ++i) {
    if (i == ellipsis) {
      keep_whole(input.rank() - consuming);
    } else if (Has(masks.new_axis, i)) {
      SlicedDimension made;
      made.kind = SlicedDimension::Kind::kNew;
      made.count = 1;
      made.begin = 0;
      made.stride = 1;
      plan.push_back(made);
    } else {
      const absl::StatusOr<SlicedDimension> sliced =
          SliceDimension(input.dim(at++), i, masks, Entry(begin, i), Entry(end, i), Entry(strides, i));
      if (!sliced.ok()) return sliced.status();
      plan.push_back(*sliced);
    }
  }
  if (ellipsis < 0) keep_whole(input.rank() - at);
  return plan;
}

}  // namespace permafrost::shapes

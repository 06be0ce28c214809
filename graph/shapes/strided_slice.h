// The meaning of StridedSlice's begin, end, strides and masks: shared by its shape and by the propagation of its
// values.
#ifndef PERMAFROST_GRAPH_SHAPES_STRIDED_SLICE_H_
#define PERMAFROST_GRAPH_SHAPES_STRIDED_SLICE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost::shapes {

struct StridedSliceMasks {
  uint64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink_axis = 0;
};

absl::StatusOr<StridedSliceMasks> ReadStridedSliceMasks(const Node& node);

// What becomes of the dimensions, in order.
struct SlicedDimension {
  enum class Kind {
    kKept,     // A dimension of the input, from `begin` in steps of `stride`, `count` times.
    kDropped,  // A dimension of the input of which only the index `begin` is taken.
    kNew,      // A dimension of size 1 that the input does not have.
  } kind = Kind::kKept;
  int64_t count = kUnknownDim;               // kUnknownDim when it cannot be known; 1 for kNew and kDropped.
  int64_t begin = KnownIntegers::kUnknown;   // kUnknown when it cannot be known.
  int64_t stride = KnownIntegers::kUnknown;  // Likewise.
};
using StridedSlicePlan = std::vector<SlicedDimension>;

// REQUIRES: input.has_rank(), length >= 0. `length` is the number of entries of begin, end and strides, each of which
// may be null. InvalidArgument: two ellipses, more entries than dimensions, a stride of 0, an index out of bounds.
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const Shape& input, int64_t length, const StridedSliceMasks& masks,
                                                  const KnownIntegers* begin, const KnownIntegers* end,
                                                  const KnownIntegers* strides);

}  // namespace permafrost::shapes

#endif  // PERMAFROST_GRAPH_SHAPES_STRIDED_SLICE_H_

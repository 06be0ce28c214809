// Interprets begin, end, strides and masks of StridedSlice, for shape inference and for the propagation of values.
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

// One dimension of the input or the result.
struct SlicedDimension {
  enum class Kind {
    kKept,     // A dimension of the input: `count` elements from `begin` in steps of `stride`.
    kDropped,  // A dimension of the input of which only index `begin` is taken.
    kNew,      // A new dimension of size 1.
  } kind = Kind::kKept;
  int64_t count = kUnknownDim;               // kUnknownDim if unknown; 1 for kNew and kDropped.
  int64_t begin = KnownIntegers::kUnknown;   // kUnknown if unknown.
  int64_t stride = KnownIntegers::kUnknown;  // kUnknown if unknown.
};
using StridedSlicePlan = std::vector<SlicedDimension>;

// Returns the dimensions of the input and the result in order. `length` is the number of entries of begin, end and
// strides, each of which may be null. Returns InvalidArgument for two ellipses, more entries than dimensions, a stride
// of 0, and an index out of bounds. REQUIRES: input.has_rank(), length >= 0.
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const Shape& input, int64_t length, const StridedSliceMasks& masks,
                                                  const KnownIntegers* begin, const KnownIntegers* end,
                                                  const KnownIntegers* strides);

}  // namespace permafrost::shapes

#endif  // PERMAFROST_GRAPH_SHAPES_STRIDED_SLICE_H_

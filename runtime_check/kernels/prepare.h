// What the Prepare functions of many kernels share: values known before the run, axes, and checked output shapes.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_PREPARE_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_PREPARE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// A Prepare function: output 0 has the shape of input 0.
absl::Status SameShape(PrepareContext* context);

// The integers of input i, a scalar or a vector. When its value is not known yet, the status of NeedsValueOf(i), which
// Prepare passes on. InvalidArgument for a higher rank or a type that is no integer.
absl::StatusOr<std::vector<int64_t>> IntegerVectorInput(PrepareContext* context, int i);
// The same for an input that must have exactly one element.
absl::StatusOr<int64_t> IntegerInput(PrepareContext* context, int i);

// The axis as a number in [0, rank), where negative ones count from the end. InvalidArgument when out of range.
absl::StatusOr<int> ResolveAxis(int64_t axis, int rank);

// Sets the shape of output i. InvalidArgument for a negative dimension or more elements or bytes than int64 counts.
absl::Status SetCheckedShape(PrepareContext* context, int i, Shape shape);

// InvalidArgument unless input i is of that rank.
absl::Status RequireRank(PrepareContext* context, int i, int rank);

// The shape of the inputs [first, first + count), one after the other along an axis of the first. InvalidArgument when
// another dimension differs, or their sum exceeds int64. REQUIRES: count >= 1.
absl::StatusOr<Shape> ShapeOfJoined(PrepareContext* context, int first, int count, int axis);

// Product of dims[begin, end). Of no use when it wraps round, which it can only where another dimension is 0.
int64_t ProductOfDims(const Shape& shape, int begin, int end);

// All types whose elements have a fixed size: what a kernel takes that moves elements and does not look at them.
std::vector<DType> MovableTypes();
// The same, and strings.
std::vector<DType> MovableAndStringTypes();
// The types that arithmetic is defined for, save the complex ones.
std::vector<DType> NumberTypes();
// The same, and the complex ones.
std::vector<DType> NumberAndComplexTypes();
// float, double, half, bfloat16.
std::vector<DType> FloatingTypes();
// The same, and the complex ones.
std::vector<DType> FloatingAndComplexTypes();
// int32 and int64.
std::vector<DType> IndexTypes();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_PREPARE_H_

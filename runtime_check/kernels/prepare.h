// Helpers for Prepare functions: values known before the run, axes, and checked output shapes.
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

// A Prepare function that gives output 0 the shape of input 0.
absl::Status SameShape(PrepareContext* context);

// Returns the integers of input i, a scalar or a vector. If its value is not known yet, returns the status of
// NeedsValueOf(i), which Prepare must return. Returns InvalidArgument for a higher rank or a type that is not an
// integer.
absl::StatusOr<std::vector<int64_t>> IntegerVectorInput(PrepareContext* context, int i);
// As IntegerVectorInput, for an input that must have exactly one element.
absl::StatusOr<int64_t> IntegerInput(PrepareContext* context, int i);

// Returns the axis in [0, rank); negative axes count from the end. Returns InvalidArgument if it is out of range.
absl::StatusOr<int> ResolveAxis(int64_t axis, int rank);

// Sets the shape of output i. Returns InvalidArgument for a negative dimension, or if the number of elements or bytes
// exceeds int64.
absl::Status SetCheckedShape(PrepareContext* context, int i, Shape shape);

// Returns InvalidArgument unless input i has that rank.
absl::Status RequireRank(PrepareContext* context, int i, int rank);

// Returns the shape of the inputs [first, first + count) concatenated along `axis`. Returns InvalidArgument if other
// dimensions differ, or if the sum exceeds int64. REQUIRES: count >= 1.
absl::StatusOr<Shape> ShapeOfJoined(PrepareContext* context, int first, int count, int axis);

// Returns the product of dims[begin, end). It can overflow only if another dimension is 0; the result is then
// meaningless.
int64_t ProductOfDims(const Shape& shape, int begin, int end);

// Returns all types with elements of fixed size, for kernels that move elements without reading them.
std::vector<DType> MovableTypes();
// Returns MovableTypes and strings.
std::vector<DType> MovableAndStringTypes();
// Returns the types with arithmetic, except the complex ones.
std::vector<DType> NumberTypes();
// Returns NumberTypes and the complex types.
std::vector<DType> NumberAndComplexTypes();
// Returns float, double, half, bfloat16.
std::vector<DType> FloatingTypes();
// Returns FloatingTypes and the complex types.
std::vector<DType> FloatingAndComplexTypes();
// Returns int32 and int64.
std::vector<DType> IndexTypes();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_PREPARE_H_

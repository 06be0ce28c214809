// Permutes the dimensions of a constant, for layouts that differ between TensorFlow and TensorFlow Lite.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_PERMUTED_TENSOR_H_
#define PERMAFROST_IO_FORMATS_TFLITE_PERMUTED_TENSOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns a copy whose dimension i is dimension order[i] of `value`. Returns InvalidArgument if the rank differs from
// the size of `order`. REQUIRES: `order` is a permutation, and elements have a fixed size.
absl::StatusOr<Tensor> Permuted(const Tensor& value, absl::Span<const int32_t> order);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_PERMUTED_TENSOR_H_

// Scales of the codes in a partition, for the C interface.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_TENSOR_SCALES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_TENSOR_SCALES_H_

#include <cstdint>
#include <vector>

#include "runtime_check/delegate.h"

namespace permafrost {

// The scales of a tensor, as permafrost_quantization describes them. Without scales: no node computes with any, or two
// nodes compute with different ones.
struct TensorScales {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;  // As many as scales.
  int32_t axis = -1;
};

// Returns the scales of each tensor of the partition. They are attributes of the nodes that compute with codes, and
// constant inputs of UniformQuantize and UniformDequantize.
std::vector<TensorScales> FindTensorScales(const Partition& partition);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_TENSOR_SCALES_H_

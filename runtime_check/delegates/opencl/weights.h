// Kernels with constant weights: their tables, and the layouts of weights.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_WEIGHTS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "graph/tensor.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/opencl/launch.h"

namespace permafrost {
namespace opencl {

// The kernel that computes a convolution or matrix product.
struct WeightedKernel {
  std::string file, name, description;
  Table table;  // Without its last word, the position of the weights.
  int64_t items = 0;
  // The shape of the packed weights: [depth, channels], the channels of each group rounded up to 4.
  int64_t depth = 1, groups = 1, group_channels = 1;
};

// Selects the kernel. `rows` is the number of rows of a matrix product, and of pixels of a result.
WeightedKernel KernelOf(const onednn::ParsedNode& node, int64_t rows);

// Adds the weights in the kernel's layout to the constants, and returns their position. Weights in the same memory are
// added once.
int64_t PackWeights(const onednn::ParsedNode& node, const WeightedKernel& kernel, const Tensor& weights,
                    Constants* constants);

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_WEIGHTS_H_

// Functions that a session calls while it builds a program, to find kernels and the contents of memory regions.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOKUPS_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOKUPS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

class Kernel;

// Returns the kernel of an op; null if there is none.
using KernelLookup = std::function<const Kernel*(Op)>;
// Returns the content of a memory region, which holds a tensor of that type and shape.
using RegionReader = std::function<absl::StatusOr<Tensor>(const std::string& region, DType dtype, const Shape& shape)>;

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOKUPS_H_

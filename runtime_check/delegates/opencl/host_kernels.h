// The kernels on the host, compiled from the same files as C++, to check what a device computes.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_HOST_KERNELS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_HOST_KERNELS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime_check/delegates/opencl/launch.h"

namespace permafrost {
namespace opencl {

// Computes some work items of a launch. `buffers` has, for each argument of the launch, the address of its buffer;
// numbers are not read, and an argument that reads constants may be null. Returns false for a kernel that is not known.
bool RunOnHost(const Launch& launch, const std::vector<uint32_t>& constants, absl::Span<char* const> buffers,
               absl::Span<const int64_t> items);

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_HOST_KERNELS_H_

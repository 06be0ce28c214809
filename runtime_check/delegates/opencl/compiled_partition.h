// A partition compiled for a device.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_COMPILED_PARTITION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_COMPILED_PARTITION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/opencl/device.h"

namespace permafrost {
namespace opencl {

// Compiles the kernels of a partition, and copies its constants to the device. The result holds the device. Returns the
// errors of Lower and of the device.
absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const std::shared_ptr<Device>& device,
                                                                    const Partition& partition);

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_COMPILED_PARTITION_H_

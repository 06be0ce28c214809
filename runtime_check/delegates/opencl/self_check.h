// Self-check of kernels: a device or driver that computes wrong is found before a model runs on it.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_SELF_CHECK_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_SELF_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime_check/delegates/opencl/device.h"
#include "runtime_check/delegates/opencl/lowering.h"

namespace permafrost {
namespace opencl {

// Runs each program of the partition once on pseudo-random inputs, and compares some of its results with those of the
// host. A program that was checked before on the device is not checked again. Returns FailedPrecondition, with the name
// of the kernel and the first difference, for a device that computes wrong, and the errors of the device.
absl::Status CheckLaunches(const LoweredPartition& partition, Device* device);

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_SELF_CHECK_H_

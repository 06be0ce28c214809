// Wraps a kernel of a shared library as a Kernel.
#ifndef PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_KERNEL_H_
#define PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_KERNEL_H_

#include <memory>
#include <string>

#include "runtime_check/delegates/external/permafrost_custom_op.h"
#include "runtime_check/kernel.h"

namespace permafrost {

struct CustomKernel {
  const permafrost_kernel* kernel = nullptr;
  const Kernel* builtin = nullptr;  // Runs the nodes that the library rejects. May be null.
  std::string path;                 // Path of the library.
  std::shared_ptr<void> library;    // Keeps the library loaded.
};

// Returns the kernel; its data is `custom`, which must outlive it.
Kernel MakeCustomKernel(const CustomKernel* custom);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_KERNEL_H_

// A kernel of a shared library, wrapped as one of ours.
#ifndef PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_KERNEL_H_
#define PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_KERNEL_H_

#include <memory>
#include <string>

#include "runtime_check/delegates/external/permafrost_custom_op.h"
#include "runtime_check/kernel.h"

namespace permafrost {

struct CustomKernel {
  const permafrost_kernel* kernel = nullptr;
  const Kernel* builtin = nullptr;  // Runs what the library refuses. May be null.
  std::string path;                 // Of the library.
  std::shared_ptr<void> library;    // Keeps it loaded.
};

// Kernel::data is `custom`, which must outlive the kernel.
Kernel MakeCustomKernel(const CustomKernel* custom);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_KERNEL_H_

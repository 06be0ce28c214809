// The page of the kernels, written from their definitions.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_KERNEL_DOCS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_KERNEL_DOCS_H_

#include <string>

namespace permafrost {

// docs/kernels.md: every op that has a kernel, what it computes and for which types.
std::string KernelDocs();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_KERNEL_DOCS_H_

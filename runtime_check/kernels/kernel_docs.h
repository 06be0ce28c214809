// The documentation page of the kernels, generated from their definitions.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_KERNEL_DOCS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_KERNEL_DOCS_H_

#include <string>

namespace permafrost {

// Returns docs/kernels.md: every op with a kernel, its formula and its types.
std::string KernelDocs();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_KERNEL_DOCS_H_

// Kernels from shared libraries, through the C interface of permafrost_custom_op.h.
#ifndef PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_OPS_H_
#define PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_OPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/program/program.h"

namespace permafrost {

struct CustomOps {
  // The kernels of the libraries, and those of FindKernel for all other ops. If an op has both, the library's kernel is
  // tried first, for each node and set of shapes; the built-in kernel runs the nodes that the library rejects.
  KernelLookup kernels;
  // The same kernels, except that ops with a built-in kernel keep it.
  KernelLookup kernels_of_new_ops;
};

// Loads the libraries at these paths. They stay loaded as long as a copy of a lookup lives. Errors name the path:
//   NotFound            there is no such file
//   InvalidArgument     it is no shared library, or exports no permafrost_custom_ops_entry; two libraries offer one op;
//                       an op cannot be replaced, because the session itself implements it
//   FailedPrecondition  it is built for another major version of the interface
//   Internal            its entry fails, or describes a kernel inconsistently
absl::StatusOr<CustomOps> LoadCustomOps(absl::Span<const std::string> paths);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_OPS_H_

// Kernels from shared libraries, through the C interface of permafrost_custom_op.h.
#ifndef PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_OPS_H_
#define PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_OPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/program/program.h"

namespace permafrost {

struct CustomOps {
  // The kernels of the libraries, and those of FindKernel for all other ops. A library's kernel of an op that has a
  // kernel already is asked first, for each node and set of shapes; what it refuses the other runs.
  KernelLookup kernels;
  // The same, save that an op that has a kernel already keeps it.
  KernelLookup kernels_of_new_ops;
};

// The libraries at these paths. They stay loaded as long as a copy of a lookup lives. Errors name the path:
//   NotFound            there is no such file
//   InvalidArgument     it is no shared library, or exports no permafrost_custom_ops_entry; two libraries offer one op;
//                       an op that is replaced cannot be (the session itself does what it does)
//   FailedPrecondition  it is built for another major version of the interface
//   Internal            its entry fails, or says something of a kernel that makes no sense
absl::StatusOr<CustomOps> LoadCustomOps(absl::Span<const std::string> paths);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CUSTOM_OPS_CUSTOM_OPS_H_

// A compiled partition: a list of operators and loops whose memory is planned before the run.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_COMPILED_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_COMPILED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"

namespace permafrost {
namespace xnnpack {

// Compiles the partition. Returns Unimplemented for a node that Translate rejects, and the errors of the library.
// REQUIRES: the library is initialized.
absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition, int num_threads);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_COMPILED_H_

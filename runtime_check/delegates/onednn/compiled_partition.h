// The compiled partition that the session runs: pieces and the memory plan for their storages.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/fusion.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {
namespace onednn {

// Compiles the partition. `num_lanes` is the number of pieces that may run concurrently, each on one thread. The plan
// must outlive the result.
absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const Partition& partition,
                                                                    const PrecisionPlan& plan, FusionOptions options,
                                                                    int num_lanes);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

// Pieces with memory: what the session runs.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/packed_weights.h"
#include "runtime_check/precision_plan.h"

namespace permafrost {
namespace onednn {

// The plan must outlive the result. `packed` may be null.
absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const Partition& partition,
                                                                    const PrecisionPlan& plan, int num_threads,
                                                                    PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

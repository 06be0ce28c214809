// Pieces with memory: what the session runs.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {
namespace onednn {

struct PartitionThreads {
  int num_threads = 1;  // That share a piece.
  int num_lanes = 1;    // Pieces that may run at the same time, each on one thread.
};

// The plan must outlive the result. `packed` may be null.
absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const Partition& partition,
                                                                    const PrecisionPlan& plan, PartitionThreads threads,
                                                                    PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

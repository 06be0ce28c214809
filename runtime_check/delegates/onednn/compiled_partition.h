// The compiled partition that the session runs: pieces and the memory plan for their storages.
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
  int num_threads = 1;  // Threads that share a piece.
  int num_lanes = 1;    // Number of pieces that may run concurrently, each on one thread.
};

// Compiles the partition. The plan must outlive the result. `packed` may be null.
absl::StatusOr<std::unique_ptr<CompiledPartition>> CompilePartition(const Partition& partition,
                                                                    const PrecisionPlan& plan, PartitionThreads threads,
                                                                    PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_COMPILED_PARTITION_H_

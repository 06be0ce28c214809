// Lowering: turns a partition into launches of kernels.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LOWERING_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LOWERING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/opencl/launch.h"

namespace permafrost {
namespace opencl {

struct LoweredPartition {
  std::vector<Launch> launches;  // In execution order.
  std::vector<uint32_t> constants;
  std::vector<int> storage;    // By tensor of the partition: its storage. Tensors with the same elements share one.
  std::vector<int64_t> bytes;  // By storage.
  std::vector<IndexCheck> checks;
};

// Nodes are parsed, and fused to steps and chains, as for the onednn delegate. Returns the errors of ParseNode, and
// ResourceExhausted if a tensor has too many elements for 32-bit indices.
absl::StatusOr<LoweredPartition> Lower(const Partition& partition);

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LOWERING_H_

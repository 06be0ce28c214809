// Fusion: turns the nodes of a partition into the pieces that run.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {
namespace onednn {

struct Fused {
  std::vector<std::unique_ptr<Piece>> pieces;  // In execution order.
  // Indexed by tensor of the partition: its storage. A storage has the number of the first tensor with the same
  // elements.
  std::vector<int> storage;
  std::vector<int64_t> bytes;  // Indexed by storage. Storages without a tensor come last.
  std::vector<int> order;      // Indexed by piece: the position at which it was made.
  // True if a piece computes in a type without NaN and infinity: 8-bit integers, split floats.
  bool wants_finite = false;
};

struct FusionOptions {
  int num_threads = 1;
  bool uses_winograd = true;        // Allows Winograd's forms for convolutions of floats.
  PackedWeights* packed = nullptr;  // A cache of packed weights, or null.
};

// Fuses elementwise nodes into the preceding convolution or matrix product where oneDNN supports it. Combines the other
// elementwise nodes into as few passes over memory as their shapes allow. A storage between pieces is as narrow as the
// planned precisions of its readers allow. Returns the errors of the pieces. `is_beside[i]`: the i-th piece that is
// made runs on one thread; pieces past the end use all threads.
absl::StatusOr<Fused> Fuse(const Partition& partition, const PrecisionPlan& plan, const FusionOptions& options,
                           const std::vector<bool>& is_beside = {});

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_H_

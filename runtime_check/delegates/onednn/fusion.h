// From the nodes of a partition to the pieces that run.
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
  std::vector<std::unique_ptr<Piece>> pieces;  // In the order in which they run.
  // By tensor of the partition: its storage, which has the number of the first tensor with the same elements.
  std::vector<int> storage;
  std::vector<int64_t> bytes;  // By storage; some storages have no tensor and come behind the others.
  std::vector<int> order;      // By piece: how many were made before it.
  bool wants_finite = false;   // Some piece computes in a type without NaN and infinity: eight bits, split floats.
};

// Fuses elementwise nodes to the convolution or matrix product before them as far as oneDNN can, and joins the others
// into as few passes over memory as their shapes allow. Storages between pieces are as narrow as the precisions of
// their readers in the plan allow. Errors of the pieces.
// `packed` may be null. `is_beside[i]`: the i-th piece that is made runs on one thread; pieces past the end use all.
absl::StatusOr<Fused> Fuse(const Partition& partition, const PrecisionPlan& plan, int num_threads,
                           PackedWeights* packed, const std::vector<bool>& is_beside = {});

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_H_

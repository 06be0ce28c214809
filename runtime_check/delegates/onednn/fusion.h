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
  // By tensor of the partition: where it is stored, the number of the first tensor with the same elements.
  std::vector<int> storage;
  std::vector<int64_t> bytes;  // Of each storage; there are some behind those of the tensors.
  std::vector<int> order;      // By piece: how many were made before it.
  bool wants_finite = false;   // Some piece computes with what holds no NaN and no infinity: eight bits, split floats.
};

// What stands alone between a convolution and the next is fused to it as far as oneDNN can; what is left of elementwise
// work is joined into as few passes over memory as its shape allows. What lies between pieces is stored as narrow as
// the plan has those that read it compute. Errors as of the pieces.
// `packed` may be null. `is_beside` has, in the order in which pieces are made, those that are for one thread; what is
// beyond its end is for all.
absl::StatusOr<Fused> Fuse(const Partition& partition, const PrecisionPlan& plan, int num_threads,
                           PackedWeights* packed, const std::vector<bool>& is_beside = {});

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_H_

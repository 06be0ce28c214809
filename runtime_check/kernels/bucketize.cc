// Bucketize: finds the interval between boundaries that contains each number.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct BucketState : KernelState {
  std::vector<float> boundaries;
};

absl::Status Prepare(PrepareContext* context) {
  auto state = std::make_unique<BucketState>();
  PF_ASSIGN_OR_RETURN(state->boundaries, FloatListAttr(context->node(), "boundaries"));
  // The comparison is false for NaN too, which cannot be ordered.
  for (size_t i = 0; i + 1 < state->boundaries.size(); ++i) {
    if (state->boundaries[i] <= state->boundaries[i + 1]) continue;
    return absl::InvalidArgumentError("attr 'boundaries' does not ascend");
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status Compute(ComputeContext* context) {
  const std::vector<float>& boundaries = context->state<BucketState>().boundaries;
  int32_t* output = context->output<int32_t>(0);
  DispatchOn<int32_t, int64_t, float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* input = context->input<T>(0);
    for (int64_t i = 0; i < context->input_shape(0).num_elements(); ++i) {
      const auto found = std::upper_bound(boundaries.begin(), boundaries.end(), input[i]);
      output[i] = static_cast<int32_t>(found - boundaries.begin());
    }
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Bucketize) {
  return Kernel("the number of boundaries that are not greater than x")
      .Types<int32_t, int64_t, float, double>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost

// Saturate: clamps to the unit interval.
#include <algorithm>
#include <cstdint>

#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// Runs once for each set of input shapes: checks them, and sets the shape of the output.
absl::Status PrepareSaturate(PrepareContext* context) { return SameShape(context); }

// Runs at each inference; allocates nothing. NaN stays NaN, since neither comparison is true.
absl::Status ComputeSaturate(ComputeContext* context) {
  const float* x = context->input<float>(0);
  float* y = context->output<float>(0);
  const int64_t count = context->input_shape(0).num_elements();
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0.f : x[i] > 1 ? 1.f : x[i];
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Saturate) {
  return Kernel("min(max(x, 0), 1)").Types<float>("T").InPlace(0).Prepare(PrepareSaturate).Compute(ComputeSaturate);
}

}  // namespace permafrost

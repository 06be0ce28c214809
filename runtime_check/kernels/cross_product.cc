// Cross: vector products in three dimensions.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

constexpr int64_t kGrain = 1 << 13;

absl::Status Prepare(PrepareContext* context) {
  const Shape &a = context->input_shape(0), &b = context->input_shape(1);
  if (a != b || a.rank() < 1 || a.dim(a.rank() - 1) != 3) {
    return absl::InvalidArgumentError(absl::StrCat("found the shapes ", a.ToString(), " and ", b.ToString(),
                                                   ", expected equal shapes that end with 3"));
  }
  return SameShape(context);
}

// Each step is rounded to the type, as in TensorFlow.
template <typename T>
T Minor(T a, T b, T c, T d) {
  const T left = Narrow<T>(Widen(a) * Widen(b)), right = Narrow<T>(Widen(c) * Widen(d));
  return Narrow<T>(Widen(left) - Widen(right));
}

absl::Status Compute(ComputeContext* context) {
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_type(0), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* inputs[] = {context->input<T>(0), context->input<T>(1)};
        T* output = context->output<T>(0);
        const int64_t count = context->output_shape(0).num_elements() / 3;
        context->threads().ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T *a = inputs[0] + 3 * i, *b = inputs[1] + 3 * i;
            const T product[] = {Minor(a[1], b[2], a[2], b[1]), Minor(a[2], b[0], a[0], b[2]),
                                 Minor(a[0], b[1], a[1], b[0])};
            for (int k = 0; k < 3; ++k) output[3 * i + k] = product[k];
          }
        });
      });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Cross) {
  return Kernel("the vector products of a and b along the last dimension, which is 3")
      .TypeNumbers("T", NumberTypes())
      .InPlace(0)
      .InPlace(1)
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost

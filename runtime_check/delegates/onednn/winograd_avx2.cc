// The transforms of Winograd convolutions for AVX2 with FMA.
#include <cstdint>

#include "absl/types/span.h"
#include "runtime_check/delegates/onednn/winograd_loops.h"
#include "runtime_check/delegates/onednn/winograd_points.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma")

namespace permafrost {
namespace onednn {
namespace winograd_avx2 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 8
#include "runtime_check/delegates/onednn/winograd_body.h"

}  // namespace

extern const absl::Span<const WinogradLoops> kForms;
const absl::Span<const WinogradLoops> kForms = kLoops;

}  // namespace winograd_avx2
}  // namespace onednn
}  // namespace permafrost

#endif

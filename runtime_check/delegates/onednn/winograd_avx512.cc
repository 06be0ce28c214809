// The transforms of Winograd convolutions for AVX-512 (F, VL, DQ, BW).
#include <cstdint>

#include "absl/types/span.h"
#include "runtime_check/delegates/onednn/winograd_loops.h"
#include "runtime_check/delegates/onednn/winograd_points.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")

namespace permafrost {
namespace onednn {
namespace winograd_avx512 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 16
#include "runtime_check/delegates/onednn/winograd_body.h"

}  // namespace

extern const absl::Span<const WinogradLoops> kForms;
const absl::Span<const WinogradLoops> kForms = kLoops;

}  // namespace winograd_avx512
}  // namespace onednn
}  // namespace permafrost

#endif

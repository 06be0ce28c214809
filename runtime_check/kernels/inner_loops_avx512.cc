// The inner loops for AVX-512 (F, VL, DQ, BW).
#include <cstdint>

#include "graph/base/selection.h"
#include "runtime_check/kernels/inner_loops.h"

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
#ifdef SELECTIVE_REGISTRATION
#pragma GCC optimize("O2")
#else
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")

namespace permafrost {
namespace avx512 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 16
#define PERMAFROST_TILE_ROWS 14
#include "runtime_check/kernels/inner_loops_body.h"

}  // namespace

extern const InnerLoops kTable;
const InnerLoops kTable = Table("avx512");

}  // namespace avx512
}  // namespace permafrost

#endif

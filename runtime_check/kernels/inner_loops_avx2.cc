// The inner loops for AVX2 with FMA.
#include <cstdint>

#include "graph/base/selection.h"
#include "runtime_check/kernels/inner_loops.h"

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX2)
#ifdef SELECTIVE_REGISTRATION
#pragma GCC optimize("O2")
#else
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx2,fma")

namespace permafrost {
namespace avx2 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 8
#define PERMAFROST_TILE_ROWS 6
#include "runtime_check/kernels/inner_loops_body.h"

}  // namespace

extern const InnerLoops kTable;
const InnerLoops kTable = Table("avx2");

}  // namespace avx2
}  // namespace permafrost

#endif

// The inner loops for SSE2, which every x86-64 supports; on other processors, for vectors of four floats.
#include <cstdint>

#include "graph/base/selection.h"
#include "runtime_check/kernels/inner_loops.h"

#if defined(SELECTIVE_REGISTRATION) && defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX2)
#pragma GCC optimize("Os")  // Few machines lack AVX2, so size matters more here.
#elif defined(SELECTIVE_REGISTRATION)
#pragma GCC optimize("O2")
#else
#pragma GCC optimize("O3")
#endif

namespace permafrost {
namespace sse2 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 4
#define PERMAFROST_TILE_ROWS 4
#include "runtime_check/kernels/inner_loops_body.h"

}  // namespace

extern const InnerLoops kTable;
const InnerLoops kTable = Table("sse2");

}  // namespace sse2
}  // namespace permafrost

// The row product for AVX2 with FMA.
#include <cstdint>

#include "runtime_check/kernels/row_product.h"

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX2)
#pragma GCC optimize("O3")
#pragma GCC target("avx2,fma")

namespace permafrost {
namespace avx2 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 8
#include "runtime_check/kernels/row_product_body.h"

}  // namespace

extern const RowLoops kRowLoops;
const RowLoops kRowLoops = {MultiplyRow};

}  // namespace avx2
}  // namespace permafrost

#endif

// The row product for AVX-512.
#include <cstdint>

#include "runtime_check/kernels/row_product.h"

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
#pragma GCC optimize("O3")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")

namespace permafrost {
namespace avx512 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 16
#include "runtime_check/kernels/row_product_body.h"

}  // namespace

extern const RowLoops kRowLoops;
const RowLoops kRowLoops = {MultiplyRow};

}  // namespace avx512
}  // namespace permafrost

#endif

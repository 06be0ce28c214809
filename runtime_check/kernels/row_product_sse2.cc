// The row product for SSE2; on other processors, for vectors of four floats.
#include <cstdint>

#include "runtime_check/kernels/row_product.h"

#pragma GCC optimize("O3")

namespace permafrost {
namespace sse2 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 4
#include "runtime_check/kernels/row_product_body.h"

}  // namespace

extern const RowLoops kRowLoops;
const RowLoops kRowLoops = {MultiplyRow};

}  // namespace sse2
}  // namespace permafrost

// Conversion of images between NCHW and NHWC. The inner loops support only NHWC.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_PLANES_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_PLANES_H_

#include <cstdint>

#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// Computes to[i][c][r] = from[i][r][c] for matrices i in [0, count).
void TransposeMatrices(ThreadPool& threads, int64_t count, int64_t rows, int64_t columns, const float* from, float* to);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_PLANES_H_

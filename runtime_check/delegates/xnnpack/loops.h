// What the library lacks, or computes otherwise than TensorFlow: loops of our own on its threads.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LOOPS_H_

#include <pthreadpool.h>

#include <cstddef>

#include "absl/strings/string_view.h"
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

void CopyBlock(const BlockCopy& copy, const float* input, float* output, pthreadpool_t pool);

// y = sigmoid(x), y = tanh(x): kSigmoid, kTanh. The library's sigmoid gives NaN for large numbers.
void ApplyLoop(OperationKind kind, size_t count, const float* x, float* y, pthreadpool_t pool);

// True when all of the floats, which may lie at any address, are finite.
bool AreFinite(absl::string_view bytes);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LOOPS_H_

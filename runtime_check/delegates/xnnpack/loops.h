// Loops for operations that the library lacks, or computes differently from TensorFlow. They run on the library's
// threads.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LOOPS_H_

#include <pthreadpool.h>

#include <cstddef>

#include "absl/strings/string_view.h"
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

void CopyBlock(const BlockCopy& copy, const float* input, float* output, pthreadpool_t pool);

// Computes y = sigmoid(x) or y = tanh(x): kSigmoid, kTanh. The library's sigmoid returns NaN for large numbers.
void ApplyLoop(OperationKind kind, size_t count, const float* x, float* y, pthreadpool_t pool);

// Adds the bias of a kBias operation to each row of its tensor, and clamps.
void AddBias(const Operation& operation, float* x, pthreadpool_t pool);

// Returns true if all floats are finite. The address may have any alignment.
bool AreFinite(absl::string_view bytes);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LOOPS_H_

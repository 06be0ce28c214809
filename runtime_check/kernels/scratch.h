// Division of a node's single scratch block into parts.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_SCRATCH_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// A layout of scratch memory. In Prepare, call Add for each part, keep its offset in the state, then call Request once.
class ScratchParts {
 public:
  // Adds a part of count * size bytes, and returns its offset in bytes, a multiple of 64. Returns InvalidArgument on
  // overflow.
  absl::StatusOr<int64_t> Add(int64_t count, int64_t size = sizeof(float)) {
    int64_t bytes = 0, end = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, int64_t{63}, &bytes) ||
        __builtin_add_overflow(total_, bytes / 64 * 64, &end)) {
      return absl::InvalidArgumentError("the shapes ask for more scratch memory than can be addressed");
    }
    const int64_t offset = total_;
    total_ = end;
    return offset;
  }
  void Request(PrepareContext* context) const { context->RequestScratch(static_cast<size_t>(total_)); }

 private:
  int64_t total_ = 0;
};

inline float* ScratchAt(ComputeContext* context, int64_t offset) {
  return reinterpret_cast<float*>(context->scratch() + offset);
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_SCRATCH_H_

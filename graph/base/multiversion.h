// Runs a loop in the version compiled for the instruction set of the current processor.
#ifndef PERMAFROST_GRAPH_BASE_MULTIVERSION_H_
#define PERMAFROST_GRAPH_BASE_MULTIVERSION_H_

#include "graph/base/processor.h"

namespace permafrost {

// Marks a function or lambda that is compiled separately in each version of its caller.
#define PF_INLINE __attribute__((always_inline))

#if defined(__x86_64__) && !defined(__AVX2__) && !defined(PERMAFROST_WITHOUT_AVX2)
namespace internal {
template <typename Loop>
__attribute__((target("avx2"))) void RunWithAvx2(const Loop& loop) {
  loop();
}
inline bool HasAvx2() {
  static const bool has = SupportedInstructionSets().avx2;
  return has;
}
}  // namespace internal

// Calls loop(), a lambda marked PF_INLINE, once. The compiler generates a version for AVX2 besides the baseline of the
// build, and the better one that the processor supports runs. Fused multiply-add is not enabled, so that both versions
// give identical results.
template <typename Loop>
void Multiversion(const Loop& loop) {
  if (internal::HasAvx2()) {
    internal::RunWithAvx2(loop);
  } else {
    loop();
  }
}
#else
template <typename Loop>
void Multiversion(const Loop& loop) {
  loop();
}
#endif

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_MULTIVERSION_H_

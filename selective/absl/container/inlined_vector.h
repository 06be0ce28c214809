// Replacement for Abseil's InlinedVector without inline storage: less code, at the cost of a few small allocations when
// a model is loaded.
#ifndef PERMAFROST_SELECTIVE_ABSL_CONTAINER_INLINED_VECTOR_H_
#define PERMAFROST_SELECTIVE_ABSL_CONTAINER_INLINED_VECTOR_H_

#include <cstddef>
#include <vector>

namespace absl {
inline namespace selective {
template <typename T, size_t kInlined>
using InlinedVector = std::vector<T>;
}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_CONTAINER_INLINED_VECTOR_H_

// As Abseil's: algorithms over whole containers.
#ifndef PERMAFROST_SELECTIVE_ABSL_ALGORITHM_CONTAINER_H_
#define PERMAFROST_SELECTIVE_ABSL_ALGORITHM_CONTAINER_H_

#include <algorithm>
#include <iterator>

namespace absl {
inline namespace selective {

template <typename C, typename T>
bool c_linear_search(const C& container, const T& value) {
  return std::find(std::begin(container), std::end(container), value) != std::end(container);
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_ALGORITHM_CONTAINER_H_

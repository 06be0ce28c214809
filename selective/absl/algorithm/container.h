// Replacement for Abseil's algorithms over containers.
#ifndef PERMAFROST_SELECTIVE_ABSL_ALGORITHM_CONTAINER_H_
#define PERMAFROST_SELECTIVE_ABSL_ALGORITHM_CONTAINER_H_

#include <algorithm>
#include <functional>
#include <iterator>

namespace absl {
inline namespace selective {

template <typename C, typename T>
bool c_linear_search(const C& container, const T& value) {
  return std::find(std::begin(container), std::end(container), value) != std::end(container);
}

// Sorts with a heap, which takes a third of std::sort's code for each element type.
template <typename C, typename Less = std::less<>>
void c_sort(C& container, Less less = {}) {
  std::make_heap(std::begin(container), std::end(container), less);
  std::sort_heap(std::begin(container), std::end(container), less);
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_ALGORITHM_CONTAINER_H_

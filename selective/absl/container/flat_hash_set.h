// Replacement for Abseil's flat_hash_set. Elements move when the set grows.
#ifndef PERMAFROST_SELECTIVE_ABSL_CONTAINER_FLAT_HASH_SET_H_
#define PERMAFROST_SELECTIVE_ABSL_CONTAINER_FLAT_HASH_SET_H_

#include "absl/container/internal_hash_table.h"

namespace absl {
inline namespace selective {

namespace internal {
struct Itself {
  template <typename Entry>
  static const Entry& Of(const Entry& entry) {
    return entry;
  }
};
}  // namespace internal

template <typename T>
class flat_hash_set : public internal::HashTable<T, T, internal::Itself> {
 public:
  using internal::HashTable<T, T, internal::Itself>::HashTable;
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_CONTAINER_FLAT_HASH_SET_H_

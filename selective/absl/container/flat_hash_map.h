// Replacement for Abseil's flat_hash_map. Entries move when the map grows.
#ifndef PERMAFROST_SELECTIVE_ABSL_CONTAINER_FLAT_HASH_MAP_H_
#define PERMAFROST_SELECTIVE_ABSL_CONTAINER_FLAT_HASH_MAP_H_

#include <utility>

#include "absl/container/internal_hash_table.h"

namespace absl {
inline namespace selective {

namespace internal {
struct FirstOf {
  template <typename Entry>
  static const auto& Of(const Entry& entry) {
    return entry.first;
  }
};
}  // namespace internal

template <typename K, typename V>
class flat_hash_map : public internal::HashTable<K, std::pair<K, V>, internal::FirstOf> {
  using Table = internal::HashTable<K, std::pair<K, V>, internal::FirstOf>;

 public:
  using mapped_type = V;
  using Table::Table;
  using typename Table::iterator;

  template <typename Q = K>
  V& operator[](Q&& key) {
    return this->FindOrAdd(std::forward<Q>(key)).first->second;
  }
  template <typename Q = K, typename... Args>
  std::pair<iterator, bool> try_emplace(Q&& key, Args&&... args) {
    const auto [entry, is_new] = this->FindOrAdd(std::forward<Q>(key));
    if (is_new) entry->second = V(std::forward<Args>(args)...);
    return {entry, is_new};
  }
  template <typename Q = K>
  const V& at(const Q& key) const {
    return this->find(key)->second;
  }
  template <typename Q = K>
  V& at(const Q& key) {
    return this->find(key)->second;
  }
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_CONTAINER_FLAT_HASH_MAP_H_

// Common base of the hash map and the hash set: entries in one vector, in insertion order, and chains of their indices
// by hash. The part that does not depend on types is compiled once.
#ifndef PERMAFROST_SELECTIVE_ABSL_CONTAINER_INTERNAL_HASH_TABLE_H_
#define PERMAFROST_SELECTIVE_ABSL_CONTAINER_INTERNAL_HASH_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {
namespace internal {

size_t HashBytes(const char* bytes, size_t size);
inline size_t MixHash(size_t hash, size_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

// The hash state passed to AbslHashValue of a class.
struct HashState {
  size_t hash = 0;

  static HashState combine(HashState state) { return state; }
  template <typename T, typename... Rest>
  static HashState combine(HashState state, const T& first, const Rest&... rest);
};

template <typename T>
size_t HashOf(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    const std::string_view text = value;
    return HashBytes(text.data(), text.size());
  } else if constexpr (std::is_pointer_v<T>) {
    return MixHash(0, reinterpret_cast<size_t>(value));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return MixHash(0, static_cast<size_t>(value));
  } else {
    return AbslHashValue(HashState(), value).hash;
  }
}

template <typename T, typename... Rest>
HashState HashState::combine(HashState state, const T& first, const Rest&... rest) {
  return combine(HashState{MixHash(state.hash, HashOf(first))}, rest...);
}

template <typename A, typename B>
size_t HashOf(const std::pair<A, B>& pair) {
  return MixHash(HashOf(pair.first), HashOf(pair.second));
}

// Chains of entry indices by hash.
class HashChains {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t First(size_t hash) const { return heads_.empty() ? kNone : heads_[hash & (heads_.size() - 1)]; }
  uint32_t Next(uint32_t number) const { return links_[number].next; }
  size_t HashAt(uint32_t number) const { return links_[number].hash; }
  void Reserve(size_t count);
  // Adds an entry whose index is the current number of entries.
  void Add(size_t hash);
  // Removes entry `number`. The last entry gets its index.
  void Remove(uint32_t number);
  void Clear();

 private:
  struct Link {
    size_t hash;
    uint32_t next;
  };
  void Rebuild(size_t num_heads);
  uint32_t* PointerTo(uint32_t number);

  std::vector<uint32_t> heads_;
  std::vector<Link> links_;
};

// Entry is the stored type. KeyOf is a struct whose function Of returns the key of an entry.
template <typename Key, typename Entry, typename KeyOf>
class HashTable {
 public:
  using key_type = Key;
  using value_type = Entry;
  using size_type = size_t;
  using iterator = Entry*;
  using const_iterator = const Entry*;

  HashTable() = default;
  template <typename Iterator>
  HashTable(Iterator begin, Iterator end) {
    insert(begin, end);
  }
  HashTable(std::initializer_list<Entry> entries) { insert(entries.begin(), entries.end()); }

  iterator begin() { return entries_.data(); }
  iterator end() { return entries_.data() + entries_.size(); }
  const_iterator begin() const { return entries_.data(); }
  const_iterator end() const { return entries_.data() + entries_.size(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void clear() {
    entries_.clear();
    chains_.Clear();
  }
  void reserve(size_t count) {
    entries_.reserve(count);
    chains_.Reserve(count);
  }

  template <typename Q = Key>
  iterator find(const Q& key) {
    return begin() + NumberOf(key, Hash(key));
  }
  template <typename Q = Key>
  const_iterator find(const Q& key) const {
    return begin() + NumberOf(key, Hash(key));
  }
  template <typename Q = Key>
  bool contains(const Q& key) const {
    return find(key) != end();
  }
  template <typename Q = Key>
  size_t count(const Q& key) const {
    return contains(key) ? 1 : 0;
  }

  std::pair<iterator, bool> insert(Entry entry) {
    const size_t hash = Hash(KeyOf::Of(entry));
    const size_t number = NumberOf(KeyOf::Of(entry), hash);
    if (number < size()) return {begin() + number, false};
    chains_.Add(hash);
    entries_.push_back(std::move(entry));
    return {&entries_.back(), true};
  }
  template <typename Iterator>
  void insert(Iterator begin, Iterator end) {
    for (Iterator i = begin; i != end; ++i) insert(Entry(*i));
  }
  template <typename... Args>
  std::pair<iterator, bool> emplace(Args&&... args) {
    return insert(Entry(std::forward<Args>(args)...));
  }
  iterator erase(const_iterator position) {
    const auto number = static_cast<uint32_t>(position - begin());
    chains_.Remove(number);
    if (number + 1 < entries_.size()) entries_[number] = std::move(entries_.back());
    entries_.pop_back();
    return begin() + number;
  }
  template <typename Q = Key, typename = std::enable_if_t<!std::is_convertible_v<Q, const_iterator>>>
  size_t erase(const Q& key) {
    const const_iterator found = find(key);
    if (found == end()) return 0;
    erase(found);
    return 1;
  }

 protected:
  template <typename Q>
  static size_t Hash(const Q& key) {
    if constexpr (std::is_same_v<Q, Key> || std::is_convertible_v<const Key&, std::string_view>) {
      return HashOf(key);
    } else {
      return HashOf(Key(key));
    }
  }
  // Returns size() if the key is absent.
  template <typename Q>
  size_t NumberOf(const Q& key, size_t hash) const {
    for (uint32_t i = chains_.First(hash); i != HashChains::kNone; i = chains_.Next(i)) {
      if (chains_.HashAt(i) == hash && KeyOf::Of(entries_[i]) == key) return i;
    }
    return entries_.size();
  }
  template <typename Q>
  std::pair<iterator, bool> FindOrAdd(Q&& key) {
    const size_t hash = Hash(key);
    const size_t number = NumberOf(key, hash);
    if (number < size()) return {begin() + number, false};
    chains_.Add(hash);
    entries_.emplace_back(Key(std::forward<Q>(key)), typename Entry::second_type());
    return {&entries_.back(), true};
  }

 private:
  std::vector<Entry> entries_;
  HashChains chains_;
};

}  // namespace internal
}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_CONTAINER_INTERNAL_HASH_TABLE_H_

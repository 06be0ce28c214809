// Implements the part of the hash tables that does not depend on types.
#include "absl/container/internal_hash_table.h"

namespace absl {
inline namespace selective {
namespace internal {

size_t HashBytes(const char* bytes, size_t size) {
  size_t hash = size;
  for (size_t i = 0; i < size; ++i) hash = MixHash(hash, static_cast<unsigned char>(bytes[i]));
  return hash;
}

void HashChains::Reserve(size_t count) {
  links_.reserve(count);
  size_t num_heads = heads_.size() < 8 ? 8 : heads_.size();
  while (num_heads < count) num_heads *= 2;
  if (num_heads != heads_.size()) Rebuild(num_heads);
}

void HashChains::Add(size_t hash) {
  if (links_.size() >= heads_.size()) Rebuild(heads_.empty() ? 8 : 2 * heads_.size());
  uint32_t& head = heads_[hash & (heads_.size() - 1)];
  links_.push_back({hash, head});
  head = static_cast<uint32_t>(links_.size() - 1);
}

void HashChains::Rebuild(size_t num_heads) {
  heads_.assign(num_heads, kNone);
  for (uint32_t i = 0; i < links_.size(); ++i) {
    uint32_t& head = heads_[links_[i].hash & (num_heads - 1)];
    links_[i].next = head;
    head = i;
  }
}

uint32_t* HashChains::PointerTo(uint32_t number) {
  uint32_t* pointer = &heads_[links_[number].hash & (heads_.size() - 1)];
  while (*pointer != number) pointer = &links_[*pointer].next;
  return pointer;
}

void HashChains::Remove(uint32_t number) {
  *PointerTo(number) = links_[number].next;
  const auto last = static_cast<uint32_t>(links_.size() - 1);
  if (number != last) {
    *PointerTo(last) = number;
    links_[number] = links_[last];
  }
  links_.pop_back();
}

void HashChains::Clear() {
  heads_.clear();
  links_.clear();
}

}  // namespace internal
}  // namespace selective
}  // namespace absl

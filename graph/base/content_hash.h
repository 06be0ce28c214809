// A non-cryptographic 64-bit hash that identifies content: runs at memory speed and gives the same value on every
// machine.
#ifndef PERMAFROST_GRAPH_BASE_CONTENT_HASH_H_
#define PERMAFROST_GRAPH_BASE_CONTENT_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// Hashes words in pairs: mixes secrets and state into both words, multiplies them, and folds the 128-bit product into
// 64 bits. Four independent states hide the latency of the multiplication, which is four cycles at a throughput of one
// per cycle. Different inputs collide with a probability of 2^-64, but not against an adversary, since collisions can
// be constructed.
class ContentHash {
 public:
  // Adds the bytes and their number.
  void Add(absl::string_view bytes);
  void AddWord(uint64_t word);
  uint64_t value() const;

 private:
  static constexpr int kLanes = 4;

  uint64_t lanes_[kLanes] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u, 0xd6e8feb86659fd93u};
};

inline uint64_t HashContent(absl::string_view bytes) {
  ContentHash hash;
  hash.Add(bytes);
  return hash.value();
}

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_CONTENT_HASH_H_

// A hash of bytes for recognising content: as fast as memory is read, the same on every machine, not for secrets.
#ifndef PERMAFROST_GRAPH_BASE_CONTENT_HASH_H_
#define PERMAFROST_GRAPH_BASE_CONTENT_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// Words are taken in pairs; the 128 bits of a product of each pair, after secrets and state were mixed in, are folded
// into 64. Four states go side by side, since a processor starts a product every cycle and finishes it after four. Any
// change of the bytes changes the result but for a chance of 2^-64; who knows the function can make two texts of the
// same hash.
class ContentHash {
 public:
  // The bytes and how many they are.
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

// A random number generator with the same results in every standard library.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_SPLIT_MIX_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_SPLIT_MIX_H_

#include <cstdint>

namespace permafrost {

// SplitMix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators, 2014): a full-period generator
// whose state is a counter.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_SPLIT_MIX_H_

// A stream of choices for generators of inputs: random for a test, or read from the bytes of a fuzzer, which then
// mutates the decisions of the generator.
#ifndef PERMAFROST_TESTS_FUZZ_CHOICES_H_
#define PERMAFROST_TESTS_FUZZ_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

#include "absl/strings/string_view.h"

namespace permafrost {

// Not thread-safe. `bytes` must outlive the object.
class Choices {
 public:
  explicit Choices(uint64_t seed) : engine_(seed) {}
  // Takes choices from `bytes`, and behind their end from a generator that depends on them alone. Few bytes then
  // describe a large input.
  explicit Choices(absl::string_view bytes) : bytes_(bytes), engine_(HashOf(bytes)) {}

  uint64_t Bits() { return Take(sizeof(uint64_t)); }
  size_t Below(size_t limit) {
    constexpr size_t kOneByte = 1 << 8, kTwoBytes = 1 << 16;
    if (limit <= 1) return 0;
    return static_cast<size_t>(Take(limit <= kOneByte ? 1 : limit <= kTwoBytes ? 2 : sizeof(uint64_t)) % limit);
  }
  bool OneIn(size_t count) { return Below(count) == 0; }
  template <typename List>
  const auto& Of(const List& list) {
    return *(std::begin(list) + Below(std::size(list)));
  }
  // Whether all bytes are used up.
  bool IsAtEnd() const { return bytes_.empty(); }

 private:
  uint64_t Take(size_t size) {
    if (bytes_.empty()) return engine_();
    uint64_t value = 0;
    for (size_t i = 0; i < size && !bytes_.empty(); ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
    }
    return value;
  }
  // FNV-1a, which is the same in every run, unlike absl::Hash.
  static uint64_t HashOf(absl::string_view bytes) {
    uint64_t hash = 14695981039346656037u;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    return hash;
  }

  absl::string_view bytes_;
  std::mt19937_64 engine_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_CHOICES_H_

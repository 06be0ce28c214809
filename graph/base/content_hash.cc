// Implements ContentHash by multiplying pairs of words and folding the products.
#include "graph/base/content_hash.h"

#include <cstring>

namespace permafrost {
namespace {

// From the fractional parts of square roots of primes: odd, with about as many ones as zeros.
constexpr uint64_t kFirst = 0x6a09e667f3bcc909u, kSecond = 0xbb67ae8584caa73bu;

uint64_t LoadWord(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint64_t Fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

void ContentHash::AddWord(uint64_t word) {
  // Adds the state again, so that a product with a factor of zero does not discard it.
  lanes_[0] = Fold(lanes_[0] ^ word, kFirst ^ lanes_[1]) + (lanes_[0] ^ kSecond);
}

void ContentHash::Add(absl::string_view bytes) {
  AddWord(bytes.size());
  constexpr size_t kStep = 2 * sizeof(uint64_t), kBlock = kLanes * kStep;
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t lanes[kLanes];
  std::memcpy(lanes, lanes_, sizeof(lanes));
  for (; left >= kBlock; left -= kBlock, at += kBlock) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t first = LoadWord(at + i * kStep), second = LoadWord(at + i * kStep + sizeof(uint64_t));
      lanes[i] = Fold(lanes[i] ^ first, kSecond ^ second) + (lanes[i] ^ second);
    }
  }
  std::memcpy(lanes_, lanes, sizeof(lanes));
  char rest[kBlock] = {};
  if (left == 0) return;
  std::memcpy(rest, at, left);
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t first = LoadWord(rest + i * kStep), second = LoadWord(rest + i * kStep + sizeof(uint64_t));
    lanes_[i] = Fold(lanes_[i] ^ first, kSecond ^ second) + (lanes_[i] ^ second);
  }
}

uint64_t ContentHash::value() const {
  uint64_t state = kFirst;
  for (const uint64_t lane : lanes_) state = Fold(state ^ lane, kSecond ^ (lane >> 32 | lane << 32)) + state;
  return Fold(state ^ kSecond, kFirst);
}

}  // namespace permafrost

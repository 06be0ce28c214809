// Implements the hashes of string_hash.h from their publications. Numbers are read in little-endian order.
#include "runtime_check/kernels/string_hash.h"

#include <cstring>
#include <utility>

namespace permafrost {
namespace {

uint64_t Rotated(uint64_t x, int bits) { return x >> bits | x << (64 - bits); }
uint64_t Folded(uint64_t x) { return x ^ x >> 47; }

template <typename T>
uint64_t Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
uint64_t Load64(const char* from) { return Load<uint64_t>(from); }

// --- FarmHash. Its constants and steps have no names.

constexpr uint64_t kFarm0 = 0xc3a5c85c97cb3127, kFarm1 = 0xb492b66fbe98f273, kFarm2 = 0x9ae16a3b2f90404f;

uint64_t FarmJoin(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = Folded((u ^ v) * factor);
  return Folded((v ^ a) * factor) * factor;
}

uint64_t FarmUpTo16(const char* s, uint64_t size) {
  if (size >= 8) {
    const uint64_t factor = kFarm2 + size * 2, a = Load64(s) + kFarm2, b = Load64(s + size - 8);
    return FarmJoin(Rotated(b, 37) * factor + a, (Rotated(a, 25) + b) * factor, factor);
  }
  if (size >= 4) {
    return FarmJoin(size + (Load<uint32_t>(s) << 3), Load<uint32_t>(s + size - 4), kFarm2 + size * 2);
  }
  if (size == 0) return kFarm2;
  const uint64_t a = Load<uint8_t>(s), b = Load<uint8_t>(s + size / 2), c = Load<uint8_t>(s + size - 1);
  return Folded((a + (b << 8)) * kFarm2 ^ (size + (c << 2)) * kFarm0) * kFarm2;
}

uint64_t FarmUpTo32(const char* s, uint64_t size) {
  const uint64_t factor = kFarm2 + size * 2;
  const uint64_t a = Load64(s) * kFarm1, b = Load64(s + 8), c = Load64(s + size - 8) * factor;
  const uint64_t d = Load64(s + size - 16) * kFarm2;
  return FarmJoin(Rotated(a + b, 43) + Rotated(c, 30) + d, a + Rotated(b + kFarm2, 18) + c, factor);
}

uint64_t FarmUpTo64(const char* s, uint64_t size) {
  const uint64_t factor = kFarm2 + size * 2;
  const uint64_t a = Load64(s) * kFarm2, b = Load64(s + 8), c = Load64(s + size - 8) * factor;
  const uint64_t d = Load64(s + size - 16) * kFarm2;
  const uint64_t y = Rotated(a + b, 43) + Rotated(c, 30) + d;
  const uint64_t z = FarmJoin(y, a + Rotated(b + kFarm2, 18) + c, factor);
  const uint64_t e = Load64(s + 16) * factor, f = Load64(s + 24);
  const uint64_t g = (y + Load64(s + size - 32)) * factor, h = (z + Load64(s + size - 24)) * factor;
  return FarmJoin(Rotated(e + f, 43) + Rotated(g, 30) + h, e + Rotated(f + a, 18) + g, factor);
}

using Two = std::pair<uint64_t, uint64_t>;

Two FarmOf32Bytes(const char* s, uint64_t a, uint64_t b) {
  const uint64_t w = Load64(s), x = Load64(s + 8), y = Load64(s + 16), z = Load64(s + 24);
  a += w;
  b = Rotated(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += Rotated(a, 44);
  return {a + z, b + c};
}

}  // namespace

uint64_t FarmFingerprint(absl::string_view text) {
  const char* s = text.data();
  const uint64_t size = text.size();
  if (size <= 16) return FarmUpTo16(s, size);
  if (size <= 32) return FarmUpTo32(s, size);
  if (size <= 64) return FarmUpTo64(s, size);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed * kFarm2 + Load64(s), y = kSeed * kFarm1 + 113, z = Folded(y * kFarm2 + 113) * kFarm2;
  Two v = {0, 0}, w = {0, 0};
  const char* const end = s + (size - 1) / 64 * 64;
  const char* const last = text.data() + size - 64;
  do {
    x = Rotated(x + y + v.first + Load64(s + 8), 37) * kFarm1;
    y = Rotated(y + v.second + Load64(s + 48), 42) * kFarm1;
    x ^= w.second;
    y += v.first + Load64(s + 40);
    z = Rotated(z + w.first, 33) * kFarm1;
    v = FarmOf32Bytes(s, v.second * kFarm1, x + w.first);
    w = FarmOf32Bytes(s + 32, z + w.second, y + Load64(s + 16));
    std::swap(z, x);
    s += 64;
  } while (s != end);
  const uint64_t factor = kFarm1 + ((z & 0xff) << 1);
  s = last;
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  x = Rotated(x + y + v.first + Load64(s + 8), 37) * factor;
  y = Rotated(y + v.second + Load64(s + 48), 42) * factor;
  x ^= w.second * 9;
  y += v.first * 9 + Load64(s + 40);
  z = Rotated(z + w.first, 33) * factor;
  v = FarmOf32Bytes(s, v.second * factor, x + w.first);
  w = FarmOf32Bytes(s + 32, z + w.second, y + Load64(s + 16));
  std::swap(z, x);
  return FarmJoin(FarmJoin(v.first, w.first, factor) + Folded(y) * kFarm0 + z, FarmJoin(v.second, w.second, factor) + x,
                  factor);
}

uint64_t SipHash(uint64_t key0, uint64_t key1, absl::string_view text) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d;
  uint64_t v2 = key0 ^ 0x6c7967656e657261, v3 = key1 ^ 0x7465646279746573;
  const auto round = [&] {
    v0 += v1;
    v2 += v3;
    v1 = Rotated(v1, 51) ^ v0;
    v3 = Rotated(v3, 48) ^ v2;
    v0 = Rotated(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = Rotated(v1, 47) ^ v2;
    v3 = Rotated(v3, 43) ^ v0;
    v2 = Rotated(v2, 32);
  };
  const auto mix = [&](uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  };
  const size_t whole = text.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) mix(Load64(text.data() + i));
  uint64_t last = static_cast<uint64_t>(text.size()) << 56;
  for (size_t i = whole; i < text.size(); ++i) last |= Load<uint8_t>(text.data() + i) << (8 * (i - whole));
  mix(last);
  v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return v0 ^ v1 ^ v2 ^ v3;
}

uint64_t MurmurHash(absl::string_view text) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995, kSeed = 0xdecafcaffe;
  uint64_t hash = kSeed ^ text.size() * kFactor;
  const size_t whole = text.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    const uint64_t word = Load64(text.data() + i) * kFactor;
    hash = (hash ^ Folded(word) * kFactor) * kFactor;
  }
  if (whole < text.size()) {
    for (size_t i = whole; i < text.size(); ++i) hash ^= Load<uint8_t>(text.data() + i) << (8 * (i - whole));
    hash *= kFactor;
  }
  return Folded(Folded(hash) * kFactor);
}

uint64_t JoinFingerprints(uint64_t first, uint64_t second) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  uint64_t result = first ^ kFactor;
  result ^= Folded(second * kFactor) * kFactor;
  result *= kFactor;
  return Folded(Folded(result) * kFactor);
}

}  // namespace permafrost

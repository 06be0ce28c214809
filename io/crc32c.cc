// Implements CRC-32C with the processor's instruction on three interleaved streams, or with tables.
//
// A state is a polynomial over GF(2) modulo the Castagnoli polynomial, bit-reflected: the highest bit is the
// coefficient of x^0. Appending n zero bytes multiplies it by x^(8n), and data is added to the result.
#include "io/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace permafrost {
namespace {

// x^32 + x^28 + x^27 + x^26 + x^25 + x^23 + x^22 + x^20 + x^19 + x^18 + x^14 + x^13 + x^11 + x^10 + x^9 + x^8 + x^6 +
// 1, reflected and without its highest term.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0); }

// Tables for eight bytes at a time: row k, entry b is the state b after k + 1 zero bytes.
using ByteTables = std::array<std::array<uint32_t, 256>, 8>;

ByteTables MakeByteTables() {
  ByteTables tables;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (auto& row : tables) {
      for (int bit = 0; bit < 8; ++bit) state = TimesX(state);
      row[byte] = state;
    }
  }
  return tables;
}

uint64_t Load64(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

#if defined(__x86_64__)

uint32_t Times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = TimesX(b);
  }
  return product;
}

// Appends kZeros zero bytes, a power of two, to a state.
template <size_t kZeros>
class ZerosAppender {
  static_assert((kZeros & (kZeros - 1)) == 0);

 public:
  ZerosAppender() {
    uint32_t factor = uint32_t{1} << 30;  // x
    for (size_t power = 1; power < 8 * kZeros; power *= 2) factor = Times(factor, factor);
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (int k = 0; k < 4; ++k) rows_[k][byte] = Times(factor, byte << (8 * k));
    }
  }

  uint32_t operator()(uint32_t state) const {
    return rows_[0][state & 0xff] ^ rows_[1][(state >> 8) & 0xff] ^ rows_[2][(state >> 16) & 0xff] ^
           rows_[3][state >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> rows_;
};

// Processes groups of three consecutive blocks of kStrand bytes each. The instruction has a latency of three cycles and
// a throughput of one per cycle, so three independent blocks keep it busy.
template <size_t kStrand>
__attribute__((target("sse4.2"))) uint32_t ExtendInStrands(uint32_t state, const char** at, size_t* size) {
  static const ZerosAppender<kStrand> append_zeros;
  while (*size >= 3 * kStrand) {
    uint64_t first = state, second = 0, third = 0;
    const char* const p = *at;
    for (size_t i = 0; i < kStrand; i += 8) {
      first = __builtin_ia32_crc32di(first, Load64(p + i));
      second = __builtin_ia32_crc32di(second, Load64(p + kStrand + i));
      third = __builtin_ia32_crc32di(third, Load64(p + 2 * kStrand + i));
    }
    state = append_zeros(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    state = append_zeros(state) ^ static_cast<uint32_t>(third);
    *at += 3 * kStrand;
    *size -= 3 * kStrand;
  }
  return state;
}

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, absl::string_view bytes) {
  const char* at = bytes.data();
  size_t size = bytes.size();
  // Long blocks reduce the number of combinations; short ones process the remainder and small inputs.
  uint32_t state = ExtendInStrands<8192>(~crc, &at, &size);
  state = ExtendInStrands<256>(state, &at, &size);
  uint64_t wide = state;
  for (; size >= 8; at += 8, size -= 8) wide = __builtin_ia32_crc32di(wide, Load64(at));
  state = static_cast<uint32_t>(wide);
  for (; size > 0; ++at, --size) state = __builtin_ia32_crc32qi(state, static_cast<unsigned char>(*at));
  return ~state;
}

#endif

}  // namespace

namespace internal {

uint32_t ExtendCrc32cPortably(uint32_t crc, absl::string_view bytes) {
  static const ByteTables tables = MakeByteTables();
  uint32_t state = ~crc;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t size = bytes.size();
  for (; size >= 8; at += 8, size -= 8) {
    state ^= uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
    state = tables[7][state & 0xff] ^ tables[6][(state >> 8) & 0xff] ^ tables[5][(state >> 16) & 0xff] ^
            tables[4][state >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
  }
  for (; size > 0; ++at, --size) state = (state >> 8) ^ tables[0][(state ^ *at) & 0xff];
  return ~state;
}

}  // namespace internal

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ExtendByInstruction(crc, bytes);
#endif
  return internal::ExtendCrc32cPortably(crc, bytes);
}

}  // namespace permafrost

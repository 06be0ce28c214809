// Implements and selects the inner loops of integer matrix products.
#include "runtime_check/kernels/integer/integer_loops.h"

#include <algorithm>
#include <cstring>

#include "graph/base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace permafrost {
namespace {

// Any machine.
void MultiplyPortable(int64_t row_count, const char* a, int64_t a_stride, const int8_t* b, int64_t groups,
                      const int32_t* start, int32_t* out) {
  constexpr int kWidth = 8;
  for (int64_t r = 0; r < row_count; ++r, a += a_stride, out += kWidth) {
    uint32_t sums[kWidth];
    for (int c = 0; c < kWidth; ++c) sums[c] = static_cast<uint32_t>(start[c]);
    for (int64_t g = 0; g < groups; ++g) {
      int16_t pair[2];
      std::memcpy(pair, a + g * 4, sizeof(pair));
      const int8_t* weights = b + g * kWidth * 2;
      for (int c = 0; c < kWidth; ++c) {
        sums[c] += static_cast<uint32_t>(pair[0] * weights[2 * c] + pair[1] * weights[2 * c + 1]);
      }
    }
    std::memcpy(out, sums, sizeof(sums));
  }
}
[[maybe_unused]] constexpr IntegerLoops kPortable = {"portable", 8, 4, MultiplyPortable};

#if defined(__x86_64__)

int32_t LoadGroup(const char* a) {
  int32_t value;
  std::memcpy(&value, a, sizeof(value));
  return value;
}

// Defines MultiplyRows<kRows> and the function of the table in the current namespace. Vector: a register of 32-bit
// sums; LOAD_WEIGHTS reads the weights of one register; MULTIPLY_ADD(sums, group, weights) adds products.
#define PERMAFROST_INTEGER_LOOPS(Vector, kTileRows, LOAD, STORE, LOAD_WEIGHTS, BROADCAST, MULTIPLY_ADD)     \
  constexpr int kLanes = sizeof(Vector) / sizeof(int32_t), kWidth = 2 * kLanes;                             \
  template <int kRows>                                                                                      \
  void MultiplyRows(const char* a, int64_t a_stride, const int8_t* b, int64_t groups, const int32_t* start, \
                    int32_t* out) {                                                                         \
    Vector sums[kRows][2];                                                                                  \
    _Pragma("GCC unroll 16") for (int r = 0; r < kRows; ++r) {                                              \
      sums[r][0] = LOAD(start);                                                                             \
      sums[r][1] = LOAD(start + kLanes);                                                                    \
    }                                                                                                       \
    for (int64_t g = 0; g < groups; ++g, a += 4, b += kWidth * 2) {                                         \
      const Vector low = LOAD_WEIGHTS(b), high = LOAD_WEIGHTS(b + kLanes * 2);                              \
      _Pragma("GCC unroll 16") for (int r = 0; r < kRows; ++r) {                                            \
        const Vector group = BROADCAST(LoadGroup(a + r * a_stride));                                        \
        sums[r][0] = MULTIPLY_ADD(sums[r][0], group, low);                                                  \
        sums[r][1] = MULTIPLY_ADD(sums[r][1], group, high);                                                 \
      }                                                                                                     \
    }                                                                                                       \
    _Pragma("GCC unroll 16") for (int r = 0; r < kRows; ++r) {                                              \
      STORE(out + r * kWidth, sums[r][0]);                                                                  \
      STORE(out + r * kWidth + kLanes, sums[r][1]);                                                         \
    }                                                                                                       \
  }                                                                                                         \
  void Multiply(int64_t row_count, const char* a, int64_t a_stride, const int8_t* b, int64_t groups,        \
                const int32_t* start, int32_t* out) {                                                       \
    while (row_count > 0) {                                                                                 \
      const int64_t rows = row_count >= kTileRows ? kTileRows : row_count >= 3 ? 3 : 1;                     \
      (rows == kTileRows ? MultiplyRows<kTileRows>                                                          \
       : rows == 3       ? MultiplyRows<3>                                                                  \
                         : MultiplyRows<1>)(a, a_stride, b, groups, start, out);                                  \
      a += rows * a_stride;                                                                                 \
      out += rows * kWidth;                                                                                 \
      row_count -= rows;                                                                                    \
    }                                                                                                       \
  }

#pragma GCC push_options
#pragma GCC optimize("O3")

namespace sse2_words {
#define LOAD(p) _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
#define STORE(p, v) _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v)
// Sign-extends 8 bytes.
#define LOAD_WEIGHTS(p) \
  _mm_srai_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), 8)
#define MULTIPLY_ADD(sums, group, weights) _mm_add_epi32(sums, _mm_madd_epi16(group, weights))
PERMAFROST_INTEGER_LOOPS(__m128i, 4, LOAD, STORE, LOAD_WEIGHTS, _mm_set1_epi32, MULTIPLY_ADD)
#undef LOAD
#undef STORE
#undef LOAD_WEIGHTS
#undef MULTIPLY_ADD
constexpr IntegerLoops kTable = {"sse2", kWidth, 4, Multiply};
}  // namespace sse2_words

#ifndef PERMAFROST_WITHOUT_AVX2
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2_words {
#define LOAD(p) _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
#define STORE(p, v) _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v)
#define LOAD_WEIGHTS(p) _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))
#define MULTIPLY_ADD(sums, group, weights) _mm256_add_epi32(sums, _mm256_madd_epi16(group, weights))
PERMAFROST_INTEGER_LOOPS(__m256i, 6, LOAD, STORE, LOAD_WEIGHTS, _mm256_set1_epi32, MULTIPLY_ADD)
#undef LOAD
#undef STORE
#undef LOAD_WEIGHTS
#undef MULTIPLY_ADD
constexpr IntegerLoops kTable = {"avx2", kWidth, 6, Multiply};
}  // namespace avx2_words
#pragma GCC pop_options
#endif

#ifndef PERMAFROST_WITHOUT_AVX512
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni")
namespace avx512_words {
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define LOAD_WEIGHTS(p) _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))
PERMAFROST_INTEGER_LOOPS(__m512i, 12, LOAD, STORE, LOAD_WEIGHTS, _mm512_set1_epi32, _mm512_dpwssd_epi32)
#undef LOAD
#undef STORE
#undef LOAD_WEIGHTS
constexpr IntegerLoops kTable = {"avx512vnni", kWidth, 12, Multiply};
}  // namespace avx512_words
#pragma GCC pop_options
#endif

#pragma GCC pop_options
#undef PERMAFROST_INTEGER_LOOPS

#endif  // defined(__x86_64__)

struct Supported {
  Supported() {
#if defined(__x86_64__)
    Add(&sse2_words::kTable);
#ifndef PERMAFROST_WITHOUT_AVX2
    if (SupportedInstructionSets().avx2) Add(&avx2_words::kTable);
#endif
#ifndef PERMAFROST_WITHOUT_AVX512
    if (SupportsByteDotProducts()) Add(&avx512_words::kTable);
#endif
#else
    Add(&kPortable);
#endif
  }
  void Add(const IntegerLoops* table) { tables[count++] = table; }
  const IntegerLoops* tables[3] = {};  // The best last.
  int count = 0;
};

const Supported& AllSupported() {
  static const Supported supported;
  return supported;
}

}  // namespace

bool SupportsByteDotProducts() {
#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
  // Leaf 7, ECX, bit 11 (Intel SDM, volume 2, CPUID).
  static const bool supports = [] {
    uint32_t a, b, c, d;
    return SupportedInstructionSets().avx512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1) != 0;
  }();
  return supports;
#else
  return false;
#endif
}

const IntegerLoops& BestIntegerLoops() { return *SupportedIntegerLoops().back(); }

absl::Span<const IntegerLoops* const> SupportedIntegerLoops() {
  return {AllSupported().tables, static_cast<size_t>(AllSupported().count)};
}

}  // namespace permafrost

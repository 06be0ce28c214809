// Implements loops over tiles of bytes with AVX-512 VNNI.
#include "runtime_check/kernels/integer/byte_tiles.h"

#include <cmath>
#include <cstring>

#include "runtime_check/kernels/integer/integer_loops.h"

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
#define PERMAFROST_BYTE_TILES
#include <immintrin.h>
#endif

namespace permafrost {

#ifdef PERMAFROST_BYTE_TILES

#pragma GCC push_options
#pragma GCC optimize("O3")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni")

namespace {

int32_t LoadGroup(const uint8_t* p) {
  int32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// Functions of the library would be compiled for these instructions, and shared with other sources; so there are none.
__mmask32 FirstLanes(int64_t count) { return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1; }
__mmask16 FirstOf16(int64_t count) { return static_cast<__mmask16>(FirstLanes(count)); }

// Sums of kRows rows and kRegisters registers of columns.
template <int kRows, int kRegisters>
void MultiplyTile(const ByteRows& rows, const uint8_t* first, const int8_t* weights, const int32_t* start,
                  int32_t* sums) {
  __m512i sum[kRows][kRegisters];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < kRegisters; ++c) sum[r][c] = _mm512_loadu_si512(start + 16 * c);
  }
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(rows.flip));
  const int64_t step = rows.step;
  for (int64_t s = 0; s < rows.num_segments; ++s) {
    const uint8_t* from = first + rows.segments[s];
    for (int64_t g = 0; g < rows.segment_groups; ++g, from += 4, weights += 4 * kTileColumns) {
      __m512i weight[kRegisters];
#pragma GCC unroll 2
      for (int c = 0; c < kRegisters; ++c) weight[c] = _mm512_loadu_si512(weights + 64 * c);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512i group = _mm512_xor_si512(_mm512_set1_epi32(LoadGroup(from + r * step)), flip);
#pragma GCC unroll 2
        for (int c = 0; c < kRegisters; ++c) sum[r][c] = _mm512_dpbusd_epi32(sum[r][c], group, weight[c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < kRegisters; ++c) _mm512_storeu_si512(sums + kTileColumns * r + 16 * c, sum[r][c]);
  }
}

// One row: successive groups have sums of their own, so that instructions do not wait for each other.
template <int kRegisters>
void MultiplyRow(const ByteRows& rows, const uint8_t* first, const int8_t* weights, const int32_t* start,
                 int32_t* sums) {
  constexpr int kParts = 4;
  __m512i sum[kParts][kRegisters];
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p) {
#pragma GCC unroll 2
    for (int c = 0; c < kRegisters; ++c)
      sum[p][c] = p == 0 ? _mm512_loadu_si512(start + 16 * c) : _mm512_setzero_si512();
  }
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(rows.flip));
  for (int64_t s = 0; s < rows.num_segments; ++s) {
    const uint8_t* from = first + rows.segments[s];
    int64_t g = 0;
    for (; g + kParts <= rows.segment_groups; g += kParts, from += 4 * kParts, weights += kParts * 4 * kTileColumns) {
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) {
        const __m512i group = _mm512_xor_si512(_mm512_set1_epi32(LoadGroup(from + 4 * p)), flip);
#pragma GCC unroll 2
        for (int c = 0; c < kRegisters; ++c) {
          sum[p][c] =
              _mm512_dpbusd_epi32(sum[p][c], group, _mm512_loadu_si512(weights + p * 4 * kTileColumns + 64 * c));
        }
      }
    }
    for (; g < rows.segment_groups; ++g, from += 4, weights += 4 * kTileColumns) {
      const __m512i group = _mm512_xor_si512(_mm512_set1_epi32(LoadGroup(from)), flip);
#pragma GCC unroll 2
      for (int c = 0; c < kRegisters; ++c) {
        sum[0][c] = _mm512_dpbusd_epi32(sum[0][c], group, _mm512_loadu_si512(weights + 64 * c));
      }
    }
  }
#pragma GCC unroll 2
  for (int c = 0; c < kRegisters; ++c) {
    const __m512i low = _mm512_add_epi32(sum[0][c], sum[1][c]), high = _mm512_add_epi32(sum[2][c], sum[3][c]);
    _mm512_storeu_si512(sums + 16 * c, _mm512_add_epi32(low, high));
  }
}

template <int kRegisters>
void MultiplyRows(int64_t row_count, const ByteRows& rows, const int8_t* weights, const int32_t* start, int32_t* sums) {
  const uint8_t* first = rows.first;
  while (row_count > 0) {
    int64_t count = 1;
    if (row_count >= 12) {
      count = 12;
      MultiplyTile<12, kRegisters>(rows, first, weights, start, sums);
    } else if (row_count >= 8) {
      count = 8;
      MultiplyTile<8, kRegisters>(rows, first, weights, start, sums);
    } else if (row_count >= 4) {
      count = 4;
      MultiplyTile<4, kRegisters>(rows, first, weights, start, sums);
    } else if (row_count >= 2) {
      count = 2;
      MultiplyTile<2, kRegisters>(rows, first, weights, start, sums);
    } else {
      MultiplyRow<kRegisters>(rows, first, weights, start, sums);
    }
    first += count * rows.step;
    sums += count * kTileColumns;
    row_count -= count;
  }
}

void Multiply(int64_t row_count, const ByteRows& rows, const int8_t* weights, int64_t columns, const int32_t* start,
              int32_t* sums) {
  if (columns > 16) {
    MultiplyRows<2>(row_count, rows, weights, start, sums);
  } else {
    MultiplyRows<1>(row_count, rows, weights, start, sums);
  }
}

// The constants of a ConversionBlock in registers.
struct Conversion {
  explicit Conversion(const ConversionBlock& block)
      : multipliers(_mm512_load_si512(block.multipliers)),
        odd_multipliers(_mm512_srli_epi64(multipliers, 32)),
        even_addends(_mm512_load_si512(block.even_addends)),
        odd_addends(_mm512_load_si512(block.odd_addends)),
        even_shifts(_mm512_load_si512(block.even_shifts)),
        odd_shifts(_mm512_load_si512(block.odd_shifts)) {}
  Conversion(int32_t multiplier, int32_t right)
      : multipliers(_mm512_set1_epi32(multiplier)),
        odd_multipliers(multipliers),
        even_addends(_mm512_set1_epi64((int64_t{1} << 30) + (int64_t{1} << (30 + right)))),
        odd_addends(even_addends),
        even_shifts(_mm512_set1_epi64(31 + right)),
        odd_shifts(even_shifts) {}

  static __m512i Round(__m512i product, __m512i addends, __m512i shifts) {
    const __mmask8 is_negative = _mm512_movepi64_mask(product);
    __m512i rounded = _mm512_add_epi64(product, addends);
    rounded = _mm512_mask_sub_epi64(rounded, is_negative, rounded, _mm512_set1_epi64(int64_t{1} << 31));
    return _mm512_srav_epi64(rounded, shifts);
  }
  // Returns 16 rescaled sums.
  __m512i operator()(__m512i sums) const {
    const __m512i even = Round(_mm512_mul_epi32(sums, multipliers), even_addends, even_shifts);
    const __m512i odd = Round(_mm512_mul_epi32(_mm512_srli_epi64(sums, 32), odd_multipliers), odd_addends, odd_shifts);
    return _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
  }

  __m512i multipliers, odd_multipliers, even_addends, odd_addends, even_shifts, odd_shifts;
};

// The product of sums and factors, rounded half away from zero, limited to 2^30.
__m256i RoundAway(__m256i sums, __m512d factors) {
  const __m512d limited =
      _mm512_min_pd(_mm512_max_pd(_mm512_mul_pd(_mm512_cvtepi32_pd(sums), factors), _mm512_set1_pd(-1073741824.0)),
                    _mm512_set1_pd(1073741824.0));
  // The sum with the largest double below a half reaches the next integer from a half on.
  const __m512d half = _mm512_or_pd(_mm512_and_pd(limited, _mm512_set1_pd(-0.0)), _mm512_set1_pd(0x1.fffffffffffffp-2));
  return _mm512_cvttpd_epi32(_mm512_add_pd(limited, half));
}

// Codes of 16 rescaled sums. These are at most 2^30 in magnitude, so that adding the zero point does not overflow.
struct Codes {
  explicit Codes(const ByteConversion& conversion)
      : zero(_mm512_set1_epi32(conversion.zero_point)),
        low(_mm_set1_epi8(conversion.low)),
        high(_mm_set1_epi8(conversion.high)),
        flip(_mm_set1_epi8(static_cast<char>(conversion.flip))) {}
  __m128i operator()(__m512i rescaled) const { return WithZero(_mm512_add_epi32(rescaled, zero)); }
  // The same for numbers that the zero point was added to.
  __m128i WithZero(__m512i numbers) const {
    return _mm_xor_si128(_mm_min_epi8(_mm_max_epi8(_mm512_cvtsepi32_epi8(numbers), low), high), flip);
  }

  __m512i zero;
  __m128i low, high, flip;
};

// Stores 16 bytes, or those of the mask. Stores with a mask of bytes take several times as long.
void Store(uint8_t* to, __mmask16 mask, __m128i bytes) {
  if (mask == 0xFFFF) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  } else {
    _mm_mask_storeu_epi8(to, mask, bytes);
  }
}

void Convert(const ByteConversion& conversion, int64_t block, const int32_t* sums, int64_t row_count, int64_t columns,
             uint8_t* output, int64_t output_step) {
  const Codes codes(conversion);
  for (; columns > 0; columns -= 16, sums += 16, output += 16, ++block) {
    const __mmask16 mask = FirstOf16(columns);
    uint8_t* to = output;
    if (conversion.twice != nullptr) {
      const Conversion rescale(conversion.twice[block]);
      for (int64_t r = 0; r < row_count; ++r, to += output_step) {
        Store(to, mask, codes(rescale(_mm512_loadu_si512(sums + r * kTileColumns))));
      }
    } else {
      const FactorBlock& factors = conversion.exact[block];
      const __m512d low = _mm512_load_pd(factors.factors), high = _mm512_load_pd(factors.factors + 8);
      for (int64_t r = 0; r < row_count; ++r, to += output_step) {
        const __m512i sum = _mm512_loadu_si512(sums + r * kTileColumns);
        const __m256i first = RoundAway(_mm512_castsi512_si256(sum), low);
        const __m256i second = RoundAway(_mm512_extracti64x4_epi64(sum, 1), high);
        const __m512i rescaled = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
        Store(to, mask, codes(rescaled));
      }
    }
  }
}

void ComputeDepthwise(int64_t pixels, const DepthwiseLine& line, uint8_t* output) {
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(line.flip));
  const __m256i low = _mm256_set1_epi8(line.conversion.low), high = _mm256_set1_epi8(line.conversion.high);
  const __m256i output_flip = _mm256_set1_epi8(static_cast<char>(line.conversion.flip));
  const __m512i zero = _mm512_set1_epi32(line.conversion.zero_point);
  for (int64_t pixel = 0; pixel < pixels; ++pixel, output += line.channels) {
    const int8_t* weights = line.weights;
    for (int64_t c = 0; c < line.channels; c += kDepthwiseChannels) {
      const __mmask32 mask = FirstLanes(line.channels - c);
      const auto load = [&](int64_t tap) {
        return _mm256_xor_si256(_mm256_maskz_loadu_epi8(mask, line.taps[tap] + c), flip);
      };
      __m256i sums[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        sums[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line.start + c + 8 * i));
      }
      for (int64_t tap = 0; tap < line.num_taps; tap += 4, weights += 128) {
        const __m256i a = load(tap), b = load(tap + 1), e = load(tap + 2), f = load(tap + 3);
        const __m256i low_ab = _mm256_unpacklo_epi8(a, b), low_ef = _mm256_unpacklo_epi8(e, f);
        const __m256i high_ab = _mm256_unpackhi_epi8(a, b), high_ef = _mm256_unpackhi_epi8(e, f);
        const __m256i codes[4] = {_mm256_unpacklo_epi16(low_ab, low_ef), _mm256_unpackhi_epi16(low_ab, low_ef),
                                  _mm256_unpacklo_epi16(high_ab, high_ef), _mm256_unpackhi_epi16(high_ab, high_ef)};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m256i weight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 32 * i));
          sums[i] = _mm256_dpbusd_epi32(sums[i], codes[i], weight);
        }
      }
      const ConversionBlock* blocks = line.conversion.twice + c / kBlockChannels;
      const __m512i first = _mm512_add_epi32(
          Conversion(blocks[0])(_mm512_inserti64x4(_mm512_castsi256_si512(sums[0]), sums[1], 1)), zero);
      const __m512i second = _mm512_add_epi32(
          Conversion(blocks[1])(_mm512_inserti64x4(_mm512_castsi256_si512(sums[2]), sums[3], 1)), zero);
      // Packing undoes the order of interleaving, and saturates.
      const __m256i words = _mm256_packs_epi32(_mm512_castsi512_si256(first), _mm512_extracti64x4_epi64(first, 1));
      const __m256i others = _mm256_packs_epi32(_mm512_castsi512_si256(second), _mm512_extracti64x4_epi64(second, 1));
      const __m256i bytes = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(words, others), low), high);
      const __m256i result = _mm256_xor_si256(bytes, output_flip);
      if (mask == ~__mmask32{0}) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(output + c), result);
      } else {
        _mm256_mask_storeu_epi8(output + c, mask, result);
      }
    }
    for (int64_t tap = 0; tap < line.num_taps; ++tap) line.taps[tap] += line.steps[tap];
  }
}

// An operand of a sum: the multiplier is split, so that its product with a code of 9 bits fits in 32 bits.
struct Operand {
  Operand(int32_t zero_point, int32_t multiplier, int32_t right)
      : zero(_mm512_set1_epi32(zero_point)),
        high(_mm512_set1_epi32(multiplier >> 11)),
        low(_mm512_set1_epi32(multiplier & 2047)),
        shift(right),
        half(_mm512_set1_epi32(right > 0 ? 1 << (right - 1) : 0)),
        is_half(multiplier == 1 << 30 && right == 0) {}
  __m512i operator()(__m512i codes) const {
    const __m512i x = _mm512_sub_epi32(codes, zero);
    if (is_half) return _mm512_slli_epi32(x, 19);  // 2^20 / 2: the operand with the larger scale.
    const __m512i rest = _mm512_add_epi32(_mm512_mullo_epi32(x, low), _mm512_set1_epi32(1 << 10));
    const __m512i product = _mm512_add_epi32(_mm512_mullo_epi32(x, high), _mm512_srai_epi32(rest, 11));
    if (shift == 0) return product;
    const __m512i sign = _mm512_srai_epi32(product, 31);
    return _mm512_sra_epi32(_mm512_add_epi32(_mm512_add_epi32(product, half), sign), _mm_cvtsi32_si128(shift));
  }

  __m512i zero, high, low;
  int32_t shift;
  __m512i half;
  bool is_half;
};

// Rescales sums in float where this decides all roundings, else exactly. Both roundings of kTwice change a quotient by
// at most 2^-(right + 1), and floats of codes have an error below 2^-13, which the margin exceeds if right is at least
// kLeastRight.
struct QuickConversion {
  static constexpr int32_t kLeastRight = 12;

  QuickConversion(int32_t multiplier, int32_t right)
      : exact(multiplier, right),
        factor(
            _mm512_set1_ps(static_cast<float>(multiplier) / 2147483648.0f / static_cast<float>(int64_t{1} << right))),
        is_quick(right >= kLeastRight) {}
  __m512i operator()(__m512i sums) const {
    if (is_quick) {
      const __m512 quotient = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), factor);
      const __m512 rounded = _mm512_roundscale_ps(quotient, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const __m512 distance = _mm512_abs_ps(_mm512_sub_ps(quotient, rounded));
      constexpr float kMargin = 1.0f / 1024;
      if (_mm512_cmp_ps_mask(distance, _mm512_set1_ps(0.5f - kMargin), _CMP_GT_OQ) == 0) {
        return _mm512_cvtps_epi32(rounded);
      }
    }
    return exact(sums);
  }

  Conversion exact;
  __m512 factor;
  bool is_quick;
};

template <bool kIsUnsigned>
__m512i LoadCodes(const uint8_t* p, int64_t step, __mmask16 mask) {
  __m128i codes;
  if (step == 0) {
    codes = _mm_set1_epi8(static_cast<char>(*p));
  } else if (mask == 0xFFFF) {
    codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  } else {
    codes = _mm_maskz_loadu_epi8(mask, p);
  }
  return kIsUnsigned ? _mm512_cvtepu8_epi32(codes) : _mm512_cvtepi8_epi32(codes);
}

// Sums of codes in float where this decides all roundings. In codes of the output, the roundings of both operands
// change a sum by at most 2^-11 and those of the result by 2^-13, as QuickConversion says. Floats add less than 2^-11
// if no operand exceeds 1024. The margin exceeds the three together.
struct QuickSum {
  explicit QuickSum(const ByteBinary& binary) {
    const double unit =
        std::ldexp(static_cast<double>(binary.output_multiplier), -31 - binary.output_shift + kFractionBits);
    double factors[2], constant = binary.conversion.zero_point;
    for (int i = 0; i < 2; ++i) {
      factors[i] = unit * std::ldexp(static_cast<double>(binary.multipliers[i]), -31 - binary.shifts[i]);
      if (i == 1) factors[i] *= binary.sign;
      constant -= factors[i] * binary.zeros[i];
    }
    constexpr double kMostFactor = 4;  // Of a code below 256.
    is_quick = binary.is_sum && binary.output_shift >= QuickConversion::kLeastRight &&
               std::fabs(factors[0]) <= kMostFactor && std::fabs(factors[1]) <= kMostFactor;
    first = _mm512_set1_ps(static_cast<float>(factors[0]));
    second = _mm512_set1_ps(static_cast<float>(factors[1]));
    start = _mm512_set1_ps(static_cast<float>(constant));
  }
  // Computes *numbers, sums with the zero point. Returns false if a rounding is not decided.
  bool operator()(__m512i x, __m512i z, __m512i* numbers) const {
    const __m512 sum =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(x), first, _mm512_fmadd_ps(_mm512_cvtepi32_ps(z), second, start));
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m512 distance = _mm512_abs_ps(_mm512_reduce_ps(sum, kNearest));
    constexpr float kMargin = 1.0f / 768;
    *numbers = _mm512_cvt_roundps_epi32(sum, kNearest);
    return _mm512_cmp_ps_mask(distance, _mm512_set1_ps(0.5f - kMargin), _CMP_GT_OQ) == 0;
  }

  static constexpr int kFractionBits = 20;  // Of operands.
  __m512 first, second, start;
  bool is_quick;
};

template <bool kIsUnsigned>
void ComputeBinary(int64_t count, const ByteBinary& binary, const uint8_t* a, int64_t a_step, const uint8_t* b,
                   int64_t b_step, uint8_t* y) {
  const Operand first(binary.zeros[0], binary.multipliers[0], binary.shifts[0]);
  const Operand second(binary.zeros[1], binary.multipliers[1], binary.shifts[1]);
  const QuickConversion rescale(binary.output_multiplier, binary.output_shift);
  const QuickSum quick(binary);
  const Codes codes(binary.conversion);
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = FirstOf16(count - i);
    const __m512i x = LoadCodes<kIsUnsigned>(a + i * a_step, a_step, mask);
    const __m512i z = LoadCodes<kIsUnsigned>(b + i * b_step, b_step, mask);
    __m512i result;
    if (quick.is_quick && quick(x, z, &result)) {
      Store(y + i, mask, codes.WithZero(result));
      continue;
    }
    if (binary.is_sum) {
      const __m512i one = first(x), other = second(z);
      result = binary.sign > 0 ? _mm512_add_epi32(one, other) : _mm512_sub_epi32(one, other);
    } else {
      result = _mm512_mullo_epi32(_mm512_sub_epi32(x, first.zero), _mm512_sub_epi32(z, second.zero));
    }
    Store(y + i, mask, codes(rescale(result)));
  }
}

void ComputeByteBinary(int64_t count, const ByteBinary& binary, const uint8_t* a, int64_t a_step, const uint8_t* b,
                       int64_t b_step, uint8_t* y) {
  (binary.is_unsigned ? ComputeBinary<true> : ComputeBinary<false>)(count, binary, a, a_step, b, b_step, y);
}

constexpr ProductTiles kProductTiles = {Multiply, Convert};

}  // namespace

#pragma GCC pop_options

const ProductTiles* SupportedProductTiles() { return SupportsByteDotProducts() ? &kProductTiles : nullptr; }
DepthwiseLoop SupportedDepthwiseLoop() { return SupportsByteDotProducts() ? ComputeDepthwise : nullptr; }
ByteBinaryLoop SupportedByteBinaryLoop() { return SupportsByteDotProducts() ? ComputeByteBinary : nullptr; }

#else

const ProductTiles* SupportedProductTiles() { return nullptr; }
DepthwiseLoop SupportedDepthwiseLoop() { return nullptr; }
ByteBinaryLoop SupportedByteBinaryLoop() { return nullptr; }

#endif

}  // namespace permafrost

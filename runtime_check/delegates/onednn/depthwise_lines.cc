// Reads each column of pixels once for all outputs that it contributes to. The number of open sums is the number of
// outputs that a window covers, and each column completes one of them.
#include "runtime_check/delegates/onednn/depthwise_lines.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>

#include "runtime_check/delegates/onednn/primitives.h"

namespace permafrost {
namespace onednn {
namespace {

using Constants = DepthwiseLines::Constants;
using Strip = DepthwiseLines::Strip;
using Function = void (*)(const Strip&, const Constants&);

constexpr int64_t kLanes = 16;  // Of 32 bits each.

int64_t BytesOf(Element element) { return StorageType{element}.bytes(); }

bool IsOfBytes(Element element) { return StorageType{element}.IsInt8(); }

// Returns the number of groups of vertical taps. One instruction multiplies and adds up four 8-bit taps; five taps take
// two groups.
int64_t GroupsOf(int64_t taps) { return (taps + 3) / 4; }

// Returns the channel at a position of the block. Larger 8-bit blocks keep channels in the order that interleaving
// produces: each quarter of the block has four neighbours out of every 16.
int64_t ChannelAt(int64_t place, int64_t block_channels, bool is_of_bytes) {
  if (!is_of_bytes || block_channels == kLanes) return place;
  const int64_t quarter = block_channels / 4;
  return place % quarter / 4 * 16 + place / quarter * 4 + place % 4;
}

}  // namespace

#if defined(__x86_64__)

namespace {

#define PERMAFROST_VECTORS __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define PERMAFROST_INLINE PERMAFROST_VECTORS __attribute__((always_inline)) inline

PERMAFROST_INLINE __m512 Sloped(__m512 value, __m512 slope) {
  return _mm512_mask_mul_ps(value, _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_LT_OQ), value, slope);
}

// Clips; the result for NaN is the second operand of each instruction, so NaN propagates.
PERMAFROST_INLINE __m512 Clipped(__m512 value, __m512 least, __m512 most) {
  return _mm512_min_ps(most, _mm512_max_ps(least, value));
}

// Rounds as ToBf16 does.
PERMAFROST_INLINE __m256i RoundedToBf16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i rounded = _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), is_nan, high, _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(rounded);
}

// Converts with one instruction, which treats denormals as zeros. Inline assembly avoids a separate compilation target.
PERMAFROST_INLINE __m256i ConvertedToBf16(__m512 value) {
  __m256i result;
  asm("vcvtneps2bf16 %1, %0" : "=v"(result) : "v"(value));
  return result;
}

// How a block of 16 channels is computed: floats, or bfloat16 converted to floats.
enum class Narrowing { kNone, kRounded, kConverted };

template <bool kIsBf16, Narrowing kNarrowing, int kTaps, int kLines>
struct Floats {
  static constexpr int kRows = kTaps + kLines - 1;
  using Sum = __m512[kLines];
  struct Column {
    __m512 rows[kRows];
  };

  PERMAFROST_INLINE Floats(const Strip& strip, const Constants& constants)
      : addends(constants.addends),
        slopes(constants.slopes),
        least(_mm512_set1_ps(constants.least)),
        most(_mm512_set1_ps(constants.most)),
        target_line(strip.target_line),
        mask(strip.mask) {
#pragma GCC unroll 25
    for (int i = 0; i < kTaps * kTaps; ++i) weights[i] = _mm512_loadu_ps(constants.weights + i * 64);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) masks[r] = static_cast<__mmask16>((strip.inside >> r & 1) != 0 ? strip.mask : 0);
  }
  PERMAFROST_INLINE void Start(Sum& sum) const {
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) sum[l] = _mm512_loadu_ps(addends);
  }
  PERMAFROST_INLINE Column Outside() const {
    Column column;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) column.rows[r] = _mm512_setzero_ps();
    return column;
  }
  PERMAFROST_INLINE Column Load(const Strip& strip, int64_t offset) const {
    Column column;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const char* from = strip.lines[r] + offset;
      if constexpr (kIsBf16) {
        const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(masks[r], from));
        column.rows[r] = _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
      } else {
        column.rows[r] = _mm512_maskz_loadu_ps(masks[r], from);
      }
    }
    return column;
  }
  PERMAFROST_INLINE void Add(Sum& sum, const Column& column, int tap) const {
#pragma GCC unroll 5
    for (int r = 0; r < kTaps; ++r) {
      const __m512 weight = weights[tap * kTaps + r];
#pragma GCC unroll 2
      for (int l = 0; l < kLines; ++l) sum[l] = _mm512_fmadd_ps(column.rows[r + l], weight, sum[l]);
    }
  }
  PERMAFROST_INLINE void Finish(const Sum& sum, char* to) const {
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l, to += target_line) {
      __m512 value = sum[l];
      if (slopes != nullptr) value = Sloped(value, _mm512_loadu_ps(slopes));
      value = Clipped(value, least, most);
      if constexpr (kNarrowing == Narrowing::kNone) {
        _mm512_mask_storeu_ps(to, mask, value);
      } else {
        _mm256_mask_storeu_epi16(to, mask,
                                 kNarrowing == Narrowing::kConverted ? ConvertedToBf16(value) : RoundedToBf16(value));
      }
    }
  }

  const float *addends, *slopes;
  const __m512 least, most;
  const int64_t target_line;
  const __mmask16 mask;
  __mmask16 masks[kRows];
  __m512 weights[kTaps * kTaps];
};

// Computes 16 channels of 8-bit sources. The instruction requires one operand that is not negative, so 128 is added to
// signed sources, and `start` compensates for it. Pixels outside the image are then 128.
template <bool kIsToFloats, int kTaps, int kLines>
struct Bytes {
  static constexpr int kRows = kTaps + kLines - 1;
  static constexpr int kGroups = (kTaps + 3) / 4;
  using Sum = __m512i[kLines];
  struct Column {
    __m512i groups[kGroups];
  };

  PERMAFROST_INLINE Bytes(const Strip& strip, const Constants& given)
      : constants(given),
        least(_mm512_set1_ps(given.least)),
        most(_mm512_set1_ps(given.most)),
        sign(_mm512_set1_epi8(given.is_source_signed ? -128 : 0)),
        target_line(strip.target_line),
        mask(strip.mask) {
#pragma GCC unroll 10
    for (int i = 0; i < kTaps * kGroups; ++i) weights[0][i] = _mm512_loadu_si512(given.weights + i * 64);
    if constexpr (kLines == 2) {
      // The second line multiplies each row by the weight of the previous row.
#pragma GCC unroll 5
      for (int tap = 0; tap < kTaps; ++tap) {
        const __m512i* first = weights[0] + tap * kGroups;
        weights[1][tap * kGroups] = _mm512_slli_epi32(first[0], 8);
        if constexpr (kGroups == 2) {
          weights[1][tap * kGroups + 1] =
              _mm512_or_si512(_mm512_slli_epi32(first[1], 8), _mm512_srli_epi32(first[0], 24));
        }
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) masks[r] = static_cast<__mmask16>((strip.inside >> r & 1) != 0 ? strip.mask : 0);
  }
  PERMAFROST_INLINE void Start(Sum& sum) const {
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) sum[l] = _mm512_loadu_si512(constants.start);
  }
  PERMAFROST_INLINE Column Outside() const {
    Column column;
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) column.groups[g] = sign;
    return column;
  }
  PERMAFROST_INLINE __m128i Row(const Strip& strip, int64_t offset, int row) const {
    return _mm_maskz_loadu_epi8(masks[row], strip.lines[row] + offset);
  }
  PERMAFROST_INLINE Column Load(const Strip& strip, int64_t offset) const {
    // Transposes in three steps: a row per quarter, then four channels of each row per quarter, then the rows of each
    // channel together.
    const __m512i quads = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i turned = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    Column column;
    __m512i rows = _mm512_zextsi128_si512(Row(strip, offset, 0));
    rows = _mm512_inserti32x4(rows, Row(strip, offset, 1), 1);
    rows = _mm512_inserti32x4(rows, Row(strip, offset, 2), 2);
    if constexpr (kRows > 3) rows = _mm512_inserti32x4(rows, Row(strip, offset, 3), 3);
    column.groups[0] = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quads, rows), _mm512_broadcast_i32x4(turned));
    if constexpr (kRows > 4) column.groups[1] = _mm512_cvtepu8_epi32(Row(strip, offset, 4));
    if constexpr (kRows > 5) {
      const __m512i last = _mm512_cvtepu8_epi32(Row(strip, offset, 5));
      column.groups[1] = _mm512_or_si512(column.groups[1], _mm512_slli_epi32(last, 8));
    }
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) column.groups[g] = _mm512_xor_si512(column.groups[g], sign);
    return column;
  }
  PERMAFROST_INLINE void Add(Sum& sum, const Column& column, int tap) const {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 2
      for (int l = 0; l < kLines; ++l) {
        sum[l] = _mm512_dpbusd_epi32(sum[l], column.groups[g], weights[l][tap * kGroups + g]);
      }
    }
  }
  PERMAFROST_INLINE void Finish(const Sum& sum, char* to) const {
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l, to += target_line) {
      __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[l]), _mm512_loadu_ps(constants.factors),
                                     _mm512_loadu_ps(constants.addends));
      if (constants.slopes != nullptr) value = Sloped(value, _mm512_loadu_ps(constants.slopes));
      value = Clipped(value, least, most);
      if constexpr (kIsToFloats) {
        _mm512_mask_storeu_ps(to, mask, value);
      } else {
        _mm_mask_storeu_epi8(to, mask, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(value)));
      }
    }
  }

  const Constants constants;
  const __m512 least, most;
  const __m512i sign;
  const int64_t target_line;
  const __mmask16 mask;
  __mmask16 masks[kRows];
  __m512i weights[kLines][kTaps * kGroups];
};

// Vectors of 64 and of 32 bytes.
struct Vector64 {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kBytes = 64;
  static PERMAFROST_INLINE Int Load(bool is_inside, const char* from) {
    return _mm512_maskz_loadu_epi8(is_inside ? ~__mmask64{0} : 0, from);
  }
  static PERMAFROST_INLINE Int Ints(const void* from) { return _mm512_loadu_si512(from); }
  static PERMAFROST_INLINE Float Floats(const float* from) { return _mm512_loadu_ps(from); }
  static PERMAFROST_INLINE Int Bytes(int8_t value) { return _mm512_set1_epi8(value); }
  static PERMAFROST_INLINE Float Same(float value) { return _mm512_set1_ps(value); }
  static PERMAFROST_INLINE Int Xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  static PERMAFROST_INLINE Int Low8(Int a, Int b) { return _mm512_unpacklo_epi8(a, b); }
  static PERMAFROST_INLINE Int High8(Int a, Int b) { return _mm512_unpackhi_epi8(a, b); }
  static PERMAFROST_INLINE Int Low16(Int a, Int b) { return _mm512_unpacklo_epi16(a, b); }
  static PERMAFROST_INLINE Int High16(Int a, Int b) { return _mm512_unpackhi_epi16(a, b); }
  static PERMAFROST_INLINE Int AddProducts(Int sum, Int a, Int b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static PERMAFROST_INLINE Float Scaled(Int sum, Float factor, Float addend) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), factor, addend);
  }
  static PERMAFROST_INLINE Float Sloped(Float value, Float slope) { return onednn::Sloped(value, slope); }
  static PERMAFROST_INLINE Int Rounded(Float value, Float least, Float most) {
    return _mm512_cvtps_epi32(Clipped(value, least, most));
  }
  static PERMAFROST_INLINE Int Pack32(Int a, Int b) { return _mm512_packs_epi32(a, b); }
  static PERMAFROST_INLINE Int Pack16(bool is_signed, Int a, Int b) {
    return is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
  }
  static PERMAFROST_INLINE void Store(char* to, Int value) { _mm512_storeu_si512(to, value); }
};

struct Vector32 {
  using Int = __m256i;
  using Float = __m256;
  static constexpr int kBytes = 32;
  static PERMAFROST_INLINE Int Load(bool is_inside, const char* from) {
    return _mm256_maskz_loadu_epi8(is_inside ? ~__mmask32{0} : 0, from);
  }
  static PERMAFROST_INLINE Int Ints(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static PERMAFROST_INLINE Float Floats(const float* from) { return _mm256_loadu_ps(from); }
  static PERMAFROST_INLINE Int Bytes(int8_t value) { return _mm256_set1_epi8(value); }
  static PERMAFROST_INLINE Float Same(float value) { return _mm256_set1_ps(value); }
  static PERMAFROST_INLINE Int Xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
  static PERMAFROST_INLINE Int Low8(Int a, Int b) { return _mm256_unpacklo_epi8(a, b); }
  static PERMAFROST_INLINE Int High8(Int a, Int b) { return _mm256_unpackhi_epi8(a, b); }
  static PERMAFROST_INLINE Int Low16(Int a, Int b) { return _mm256_unpacklo_epi16(a, b); }
  static PERMAFROST_INLINE Int High16(Int a, Int b) { return _mm256_unpackhi_epi16(a, b); }
  static PERMAFROST_INLINE Int AddProducts(Int sum, Int a, Int b) { return _mm256_dpbusd_epi32(sum, a, b); }
  static PERMAFROST_INLINE Float Scaled(Int sum, Float factor, Float addend) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), factor, addend);
  }
  static PERMAFROST_INLINE Float Sloped(Float value, Float slope) {
    return _mm256_mask_mul_ps(value, _mm256_cmp_ps_mask(value, _mm256_setzero_ps(), _CMP_LT_OQ), value, slope);
  }
  static PERMAFROST_INLINE Int Rounded(Float value, Float least, Float most) {
    return _mm256_cvtps_epi32(_mm256_min_ps(most, _mm256_max_ps(least, value)));
  }
  static PERMAFROST_INLINE Int Pack32(Int a, Int b) { return _mm256_packs_epi32(a, b); }
  static PERMAFROST_INLINE Int Pack16(bool is_signed, Int a, Int b) {
    return is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
  }
  static PERMAFROST_INLINE void Store(char* to, Int value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  }
};

// Computes a whole vector of bytes, for three taps. Interleaving changes the order of channels and packing restores it.
template <typename V>
struct ManyBytes {
  static constexpr int kTaps = 3, kQuarters = 4, kQuarter = V::kBytes / kQuarters;
  using Sum = typename V::Int[kQuarters];
  struct Column {
    typename V::Int quarters[kQuarters];
  };

  PERMAFROST_INLINE ManyBytes(const Strip& strip, const Constants& given)
      : constants(given),
        least(V::Same(given.least)),
        most(V::Same(given.most)),
        sign(V::Bytes(given.is_source_signed ? -128 : 0)) {
#pragma GCC unroll 12
    for (int i = 0; i < kTaps * kQuarters; ++i) weights[i] = V::Ints(given.weights + i * V::kBytes);
#pragma GCC unroll 3
    for (int r = 0; r < kTaps; ++r) is_inside[r] = (strip.inside >> r & 1) != 0;
  }
  PERMAFROST_INLINE void Start(Sum& sum) const {
#pragma GCC unroll 4
    for (int q = 0; q < kQuarters; ++q) sum[q] = V::Ints(constants.start + q * kQuarter);
  }
  PERMAFROST_INLINE Column Outside() const {
    Column column;
#pragma GCC unroll 4
    for (int q = 0; q < kQuarters; ++q) column.quarters[q] = sign;
    return column;
  }
  PERMAFROST_INLINE Column Load(const Strip& strip, int64_t offset) const {
    typename V::Int rows[kTaps];
#pragma GCC unroll 3
    for (int r = 0; r < kTaps; ++r) rows[r] = V::Xor(V::Load(is_inside[r], strip.lines[r] + offset), sign);
    const typename V::Int none = V::Bytes(0);
    const typename V::Int low = V::Low8(rows[0], rows[1]), high = V::High8(rows[0], rows[1]);
    const typename V::Int last_low = V::Low8(rows[2], none), last_high = V::High8(rows[2], none);
    return {{V::Low16(low, last_low), V::High16(low, last_low), V::Low16(high, last_high), V::High16(high, last_high)}};
  }
  PERMAFROST_INLINE void Add(Sum& sum, const Column& column, int tap) const {
#pragma GCC unroll 4
    for (int q = 0; q < kQuarters; ++q) {
      sum[q] = V::AddProducts(sum[q], column.quarters[q], weights[tap * kQuarters + q]);
    }
  }
  PERMAFROST_INLINE void Finish(const Sum& sum, char* to) const {
    typename V::Int rounded[kQuarters];
#pragma GCC unroll 4
    for (int q = 0; q < kQuarters; ++q) {
      typename V::Float value =
          V::Scaled(sum[q], V::Floats(constants.factors + q * kQuarter), V::Floats(constants.addends + q * kQuarter));
      if (constants.slopes != nullptr) value = V::Sloped(value, V::Floats(constants.slopes + q * kQuarter));
      rounded[q] = V::Rounded(value, least, most);
    }
    V::Store(to, V::Pack16(constants.is_target_signed, V::Pack32(rounded[0], rounded[1]),
                           V::Pack32(rounded[2], rounded[3])));
  }

  const Constants constants;
  const typename V::Float least, most;
  const typename V::Int sign;
  bool is_inside[kTaps];
  typename V::Int weights[kTaps * kQuarters];
};

template <typename Math, int kTaps, int kStride>
PERMAFROST_VECTORS void RunStrip(const Strip& given, const Constants& constants) {
  const Strip strip = given;
  const Math math(strip, constants);
  constexpr int kOpen = (kTaps + kStride - 1) / kStride;  // Number of open sums.
  typename Math::Sum sums[kOpen];
#pragma GCC unroll 5
  for (int s = 0; s < kOpen; ++s) math.Start(sums[s]);
  char* to = strip.target;
  int64_t ended = 1 - kOpen;  // The position that is completed next.
  int64_t offset = strip.offset;
  for (int64_t first = 0;; first += kOpen * kStride) {
#pragma GCC unroll 6
    for (int c = 0; c < kOpen * kStride; ++c, offset += strip.step) {
      const bool is_inside = first + c >= strip.first_inside && first + c < strip.last_inside;
      const typename Math::Column column = is_inside ? math.Load(strip, offset) : math.Outside();
      // The column contributes to each open position by a different tap, and completes the oldest one.
#pragma GCC unroll 5
      for (int tap = kTaps - 1; tap >= 0; --tap) {
        const int ahead = c - tap + kOpen * kStride;
        if (ahead % kStride != 0) continue;
        typename Math::Sum& sum = sums[ahead / kStride % kOpen];
        if (tap == 0) math.Start(sum);
        math.Add(sum, column, tap);
        if (tap != kTaps - 1) continue;
        if (ended >= 0) {
          math.Finish(sum, to);
          to += strip.target_step;
        }
        if (++ended == strip.positions) return;
      }
    }
  }
}

// Returns null if this number of lines is not supported.
template <template <int, int> class Math>
Function Instance(int64_t taps, int64_t stride, int64_t lines) {
  if (lines == 2) {
    if (stride != 1) return nullptr;
    return taps == 3 ? RunStrip<Math<3, 2>, 3, 1> : RunStrip<Math<5, 2>, 5, 1>;
  }
  if (taps == 3) return stride == 1 ? RunStrip<Math<3, 1>, 3, 1> : RunStrip<Math<3, 1>, 3, 2>;
  return stride == 1 ? RunStrip<Math<5, 1>, 5, 1> : RunStrip<Math<5, 1>, 5, 2>;
}

template <typename V>
Function InstanceOfMany(int64_t stride, int64_t lines) {
  if (lines == 2) return nullptr;
  return stride == 1 ? RunStrip<ManyBytes<V>, 3, 1> : RunStrip<ManyBytes<V>, 3, 2>;
}

template <int kTaps, int kLines>
using FloatsToFloats = Floats<false, Narrowing::kNone, kTaps, kLines>;
template <int kTaps, int kLines>
using Bf16ToFloats = Floats<true, Narrowing::kNone, kTaps, kLines>;
template <int kTaps, int kLines>
using Bf16ToRounded = Floats<true, Narrowing::kRounded, kTaps, kLines>;
template <int kTaps, int kLines>
using Bf16ToConverted = Floats<true, Narrowing::kConverted, kTaps, kLines>;
template <int kTaps, int kLines>
using BytesToFloats = Bytes<true, kTaps, kLines>;
template <int kTaps, int kLines>
using BytesToBytes = Bytes<false, kTaps, kLines>;

Function FunctionFor(Element source, Element target, int64_t block_channels, int64_t taps, int64_t stride,
                     int64_t lines) {
  if (block_channels == Vector64::kBytes) return InstanceOfMany<Vector64>(stride, lines);
  if (block_channels == Vector32::kBytes) return InstanceOfMany<Vector32>(stride, lines);
  if (IsOfBytes(source)) {
    return IsOfBytes(target) ? Instance<BytesToBytes>(taps, stride, lines)
                             : Instance<BytesToFloats>(taps, stride, lines);
  }
  if (source == Element::kFloat) return Instance<FloatsToFloats>(taps, stride, lines);
  if (target == Element::kFloat) return Instance<Bf16ToFloats>(taps, stride, lines);
  return HasBf16Instructions() ? Instance<Bf16ToConverted>(taps, stride, lines)
                               : Instance<Bf16ToRounded>(taps, stride, lines);
}

}  // namespace

bool HasDepthwiseLines(Element source) { return IsOfBytes(source) ? HasInt8() : HasBf16(); }

#else

namespace {

Function FunctionFor(Element, Element, int64_t, int64_t, int64_t, int64_t) { return nullptr; }

}  // namespace

bool HasDepthwiseLines(Element) { return false; }

#endif

bool HasDepthwiseLines(const WindowAxis& axis) {
  return (axis.taps == 3 || axis.taps == 5) && (axis.stride == 1 || (axis.stride == 2 && axis.dilation == 1));
}

DepthwiseLines::DepthwiseLines(const WindowAxis& axis, int64_t channels, Element source, Element target,
                               const std::vector<float>& weights, const DepthwiseResults& results)
    : axis_(axis), channels_(channels), source_(source), target_(target), least_(results.least), most_(results.most) {
  Prepare(results);
  const int64_t taps = axis.taps;
  for (Block& block : blocks_) {
    block.weights = weights_.size();
    std::vector<float> placed(static_cast<size_t>(taps * taps * block.channels), 0.0f);
    for (int64_t i = 0; i < std::min(block.channels, channels - block.first); ++i) {
      for (int64_t y = 0; y < taps; ++y) {
        for (int64_t x = 0; x < taps; ++x) {
          placed[static_cast<size_t>((x * taps + y) * block.channels + i)] =
              weights[static_cast<size_t>((y * taps + x) * channels + block.first + i)];
        }
      }
    }
    const auto* bytes = reinterpret_cast<const char*>(placed.data());
    weights_.insert(weights_.end(), bytes, bytes + placed.size() * sizeof(float));
  }
}

DepthwiseLines::DepthwiseLines(const WindowAxis& axis, int64_t channels, Element source, Element target,
                               const std::vector<int8_t>& weights, const DepthwiseResults& results)
    : axis_(axis), channels_(channels), source_(source), target_(target), least_(results.least), most_(results.most) {
  Prepare(results);
  const int64_t taps = axis.taps, groups = GroupsOf(taps);
  for (Block& block : blocks_) {
    block.weights = weights_.size();
    weights_.resize(weights_.size() + static_cast<size_t>(taps * groups * block.channels * 4), 0);
    for (int64_t i = 0; i < block.channels; ++i) {
      const int64_t channel = block.first + ChannelAt(i, block.channels, true);
      if (channel >= channels) continue;
      for (int64_t y = 0; y < taps; ++y) {
        for (int64_t x = 0; x < taps; ++x) {
          const int8_t weight = weights[static_cast<size_t>((y * taps + x) * channels + channel)];
          const int64_t place = ((x * groups + y / 4) * block.channels + i) * 4 + y % 4;
          weights_[block.weights + static_cast<size_t>(place)] = static_cast<char>(weight);
          if (source == Element::kS8) start_[block.numbers + static_cast<size_t>(i)] -= 128 * weight;
        }
      }
    }
  }
}

void DepthwiseLines::Prepare(const DepthwiseResults& results) {
  const bool is_of_bytes = IsOfBytes(source_);
  const bool may_be_larger = is_of_bytes && IsOfBytes(target_) && axis_.taps == 3;
  for (int64_t first = 0; first < channels_;) {
    const int64_t left = channels_ - first;
    Block block;
    block.first = first;
    block.channels = may_be_larger && left >= 64 ? 64 : may_be_larger && left >= 32 ? 32 : kLanes;
    block.mask = static_cast<uint16_t>(left < kLanes ? (1 << left) - 1 : 0xffff);
    block.run = FunctionFor(source_, target_, block.channels, axis_.taps, axis_.stride, 1);
    block.run_two = FunctionFor(source_, target_, block.channels, axis_.taps, axis_.stride, 2);
    block.weights = 0;
    block.numbers = addends_.size();
    for (int64_t i = 0; i < block.channels; ++i) {
      const auto channel = static_cast<size_t>(first + ChannelAt(i, block.channels, is_of_bytes));
      const bool is_one = channel < static_cast<size_t>(channels_);
      addends_.push_back(is_one ? results.addends[channel] : 0.0f);
      if (!results.slopes.empty()) slopes_.push_back(is_one ? results.slopes[channel] : 1.0f);
      if (!is_of_bytes) continue;
      factors_.push_back(is_one ? results.factors[channel] : 0.0f);
      start_.push_back(0);
    }
    first += block.channels;
    blocks_.push_back(block);
  }
}

void DepthwiseLines::Run(const char* const* lines, int64_t count, char* target) const {
  const int64_t source_bytes = BytesOf(source_), target_bytes = BytesOf(target_), dilation = axis_.dilation;
  const int64_t num_lines = axis_.taps + count - 1;
  uint32_t inside = 0;
  const char* some_line = target;
  for (int64_t t = 0; t < num_lines; ++t) {
    if (lines[t] == nullptr) continue;
    inside |= 1u << t;
    some_line = lines[t];
  }
  Strip strip;
  strip.target_line = axis_.output * channels_ * target_bytes;
  strip.step = dilation * channels_ * source_bytes;
  strip.target_step = dilation * channels_ * target_bytes;
  for (const Block& block : blocks_) {
    Constants constants;
    constants.weights = weights_.data() + block.weights;
    constants.factors = factors_.empty() ? nullptr : factors_.data() + block.numbers;
    constants.addends = addends_.data() + block.numbers;
    constants.slopes = slopes_.empty() ? nullptr : slopes_.data() + block.numbers;
    constants.start = start_.empty() ? nullptr : start_.data() + block.numbers;
    constants.least = least_;
    constants.most = most_;
    constants.is_source_signed = source_ == Element::kS8;
    constants.is_target_signed = target_ == Element::kS8;
    strip.mask = block.mask;
    const int64_t at_once = block.run_two == nullptr ? 1 : count;
    for (int64_t line = 0; line < count; line += at_once) {
      strip.inside = inside >> line;
      for (int64_t t = 0; t < axis_.taps + at_once - 1; ++t) {
        // A line outside the image is not read, so any valid pointer will do.
        strip.lines[t] = (lines[line + t] == nullptr ? some_line : lines[line + t]) + block.first * source_bytes;
      }
      // With dilation, positions that share columns are `dilation` apart.
      for (int64_t p = 0; p < std::min(dilation, axis_.output); ++p) {
        const int64_t column = p - axis_.pad_before;
        strip.offset = column * channels_ * source_bytes;
        strip.first_inside = column < 0 ? (dilation - 1 - column) / dilation : 0;
        strip.last_inside = column < axis_.input ? (axis_.input - column + dilation - 1) / dilation : 0;
        strip.positions = (axis_.output - p + dilation - 1) / dilation;
        strip.target = target + line * strip.target_line + (p * channels_ + block.first) * target_bytes;
        (at_once == 2 ? block.run_two : block.run)(strip, constants);
      }
    }
  }
}

int64_t DepthwiseLines::bytes() const {
  return static_cast<int64_t>(weights_.size() + (factors_.size() + addends_.size() + slopes_.size()) * sizeof(float) +
                              start_.size() * sizeof(int32_t));
}

}  // namespace onednn
}  // namespace permafrost

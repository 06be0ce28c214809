// Implements the loops with one function per op. The compiler vectorises it for each instruction set.
#include "runtime_check/delegates/onednn/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {
namespace {

// The runtimes of the sanitizers are not initialized yet when the loader selects a clone.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PERMAFROST_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PERMAFROST_CLONES
#endif

// clang-format off
#define LOOP_UNARY(name, text, expression)                                                             \
  PERMAFROST_CLONES void name(int64_t count, const float* a, const float*, [[maybe_unused]] float alpha, \
                              [[maybe_unused]] float beta, float* y) {                                 \
    for (int64_t i = 0; i < count; ++i) {                                                              \
      const float x = a[i];                                                                            \
      y[i] = expression;                                                                               \
    }                                                                                                  \
  }
#define LOOP_BINARY(name, text, expression)                                                                      \
  PERMAFROST_CLONES void name(int64_t count, const float* a, const float* b, float /*alpha*/, float /*beta*/, float* y) { \
    for (int64_t i = 0; i < count; ++i) {                                                                        \
      const float x = a[i], z = b[i];                                                                            \
      y[i] = expression;                                                                                         \
    }                                                                                                            \
  }
#define LOOP_FUNCTION(name, text)
#include "runtime_check/delegates/onednn/loop_ops.def"
// clang-format on

void Sigmoid(int64_t count, const float* x, const float*, float, float, float* y) {
  BestInnerLoops().sigmoid(count, x, y);
}

void Tanh(int64_t count, const float* x, const float*, float, float, float* y) { BestInnerLoops().tanh(count, x, y); }

void Exp(int64_t count, const float* x, const float*, float, float, float* y) { BestInnerLoops().exp(count, x, y); }

// y may be x: intermediate values are buffered in pieces of this size.
constexpr int64_t kPiece = 512;

void Swish(int64_t count, const float* x, const float*, float, float, float* y) {
  float gate[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    BestInnerLoops().sigmoid(size, x + i, gate);
    Mul(size, x + i, gate, 0, 0, y + i);
  }
}

PERMAFROST_CLONES void SelectElu(int64_t count, float alpha, const float* x, const float* grown, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? alpha * (grown[i] - 1.0f) : x[i];
}

void Elu(int64_t count, const float* x, const float*, float alpha, float, float* y) {
  float grown[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    BestInnerLoops().exp(size, x + i, grown);
    SelectElu(size, alpha, x + i, grown, y + i);
  }
}

// erf(x) for |x| < 4, where it is 1 - 1.5e-8, as a quotient of polynomials (the one of Eigen and XLA, 3 ulp).
PERMAFROST_CLONES void Erf(int64_t count, const float* a, const float*, float, float, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    const float given = a[i];
    const float x = given < -4.0f ? -4.0f : (given > 4.0f ? 4.0f : given);
    const float s = x * x;
    float p = -2.72614225801306e-10f;
    p = p * s + 2.77068142495902e-08f;
    p = p * s - 2.10102402082508e-06f;
    p = p * s - 5.69250639462346e-05f;
    p = p * s - 7.34990630326855e-04f;
    p = p * s - 2.95459980854025e-03f;
    p = p * s - 1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * s - 2.13374055278905e-04f;
    q = q * s - 1.68282697438203e-03f;
    q = q * s - 7.37332916720468e-03f;
    q = q * s - 1.42647390514189e-02f;
    y[i] = x * p / q;
  }
}

// erfc(|x|) = t * exp(-x^2 + polynomial of t) with t = 1 / (1 + |x| / 2), to 1.2e-7 of the result (Numerical Recipes,
// section 6.2). ErfcExponents computes the argument of exp.
PERMAFROST_CLONES void ErfcExponents(int64_t count, float scale, const float* a, float* t_of, float* exponents) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = std::fabs(a[i] * scale);
    const float t = 1.0f / (1.0f + 0.5f * x);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    t_of[i] = t;
    exponents[i] = p - x * x;
  }
}

PERMAFROST_CLONES void FinishErfc(int64_t count, const float* x, const float* t, const float* grown, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    const float above = t[i] * grown[i];
    y[i] = x[i] < 0 ? 2.0f - above : above;
  }
}

PERMAFROST_CLONES void FinishGelu(int64_t count, const float* x, const float* t, const float* grown, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    const float above = t[i] * grown[i];
    y[i] = 0.5f * x[i] * (x[i] > 0 ? 2.0f - above : above);
  }
}

void Erfc(int64_t count, const float* x, const float*, float, float, float* y) {
  float t[kPiece], grown[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    ErfcExponents(size, 1.0f, x + i, t, grown);
    BestInnerLoops().exp(size, grown, grown);
    FinishErfc(size, x + i, t, grown, y + i);
  }
}

void Gelu(int64_t count, const float* x, const float*, float, float, float* y) {
  constexpr float kRootHalf = 0.70710678118654752f;
  float t[kPiece], grown[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    ErfcExponents(size, kRootHalf, x + i, t, grown);
    BestInnerLoops().exp(size, grown, grown);
    FinishGelu(size, x + i, t, grown, y + i);
  }
}

PERMAFROST_CLONES void GeluTanhArguments(int64_t count, const float* a, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = 0.79788456080286536f * (a[i] + 0.044715f * a[i] * a[i] * a[i]);
  }
}

PERMAFROST_CLONES void FinishGeluTanh(int64_t count, const float* x, const float* gate, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = 0.5f * x[i] * (1.0f + gate[i]);
}

void GeluTanh(int64_t count, const float* x, const float*, float, float, float* y) {
  float gate[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    GeluTanhArguments(size, x + i, gate);
    BestInnerLoops().tanh(size, gate, gate);
    FinishGeluTanh(size, x + i, gate, y + i);
  }
}

// Partial results of reductions, as many as fill a vector of the widest instruction set.
constexpr int64_t kLanes = 16;

// Subtracts the largest number of each row.
PERMAFROST_CLONES void SubtractMost(int64_t rows, int64_t count, const float* x, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += count, y += count) {
    float lanes[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = x[0];
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t j = 0; j < width; ++j) lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
    }
    float most = lanes[0];
    for (; i < count; ++i) most = x[i] > most ? x[i] : most;
    for (int64_t k = 0; k < count; ++k) y[k] = x[k] - most;
  }
}

// Sums in lanes, which are then added in pairs, so that errors stay small for long rows.
#define PERMAFROST_SUM(expression)                                    \
  float lanes[kLanes] = {};                                           \
  int64_t i = 0;                                                      \
  for (; i + kLanes <= count; i += kLanes) {                          \
    for (int64_t j = 0; j < kLanes; ++j) {                            \
      const float value = x[i + j];                                   \
      lanes[j] += expression;                                         \
    }                                                                 \
  }                                                                   \
  for (int64_t j = 0; i < count; ++i, ++j) {                          \
    const float value = x[i];                                         \
    lanes[j] += expression;                                           \
  }                                                                   \
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {           \
    for (int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width]; \
  }                                                                   \
  return lanes[0]

PERMAFROST_CLONES float SumAnywhere(int64_t count, const float* x) { PERMAFROST_SUM(value); }
PERMAFROST_CLONES float SquaresAround(int64_t count, float mean, const float* x) {
  PERMAFROST_SUM((value - mean) * (value - mean));
}

// Divides each row by its sum. Returns false if a sum is NaN.
PERMAFROST_CLONES bool DivideBySums(int64_t rows, int64_t count, float* y) {
  bool is_number = true;
  for (int64_t r = 0; r < rows; ++r, y += count) {
    float lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] += y[i + j];
    }
    for (int64_t j = 0; i < count; ++i, ++j) lanes[j] += y[i];
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    }
    is_number = is_number && lanes[0] == lanes[0];
    const float factor = 1.0f / lanes[0];
    for (int64_t k = 0; k < count; ++k) y[k] *= factor;
  }
  return is_number;
}

PERMAFROST_CLONES void FinishNormalize(int64_t count, float mean, float scale, const float* x, const float* factor,
                                       const float* offset, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * scale * factor[i] + offset[i];
}

PERMAFROST_CLONES void SelectSame(int64_t count, const bool* condition, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a[i] : b[i];
}

PERMAFROST_CLONES uint32_t CountNonFinite(const char* floats, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, floats + i * 4, sizeof(bits));
    found |= (bits & kExponent) == kExponent ? 1u : 0u;
  }
  return found;
}

PERMAFROST_CLONES void RoundToBf16(int64_t count, const uint32_t* from, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = from[i];
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    // Keeps NaN from becoming an infinity.
    to[i] = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded);
  }
}

PERMAFROST_CLONES void WidenBf16(int64_t count, const uint16_t* from, uint32_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint32_t>(from[i]) << 16;
}

// Adding this number rounds to an integer, which is then in the lowest bits.
constexpr float kRounding = 12582912.0f;

template <typename T>
inline T RoundedTo(float value, float least, float most) {
  const float inside = value < least ? least : (value > most ? most : value);
  const float rounded = inside + kRounding;
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return static_cast<T>(bits);
}

PERMAFROST_CLONES void RoundToU8(int64_t count, float factor, const float* from, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = RoundedTo<uint8_t>(from[i] * factor, 0.0f, 255.0f);
}

PERMAFROST_CLONES void RoundToS8(int64_t count, float factor, const float* from, int8_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = RoundedTo<int8_t>(from[i] * factor, -127.0f, 127.0f);
}

PERMAFROST_CLONES void WidenU8(int64_t count, float scale, const uint8_t* from, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = scale * static_cast<float>(from[i]);
}

PERMAFROST_CLONES void WidenS8(int64_t count, float scale, const int8_t* from, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = scale * static_cast<float>(from[i]);
}

PERMAFROST_CLONES void MixLines(int64_t count, float fraction, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] + (b[i] - a[i]) * fraction;
}

PERMAFROST_CLONES void MixPixelsAnywhere(int64_t channels, const float* from, absl::Span<const Tap> taps, float* to) {
  for (const Tap& tap : taps) {
    const float *lower = from + tap.lower * channels, *upper = from + tap.upper * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] = lower[c] + (upper[c] - lower[c]) * tap.fraction;
    to += channels;
  }
}

PERMAFROST_CLONES void MovingProductsAnywhere(int64_t moves, int64_t move_step, int64_t rows, int64_t count,
                                              Block moving, Block fixed, float* results) {
  for (int64_t m = 0; m < moves; ++m) {
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const float* a = moving.data + m * move_step + r * moving.row_step;
      const float* b = fixed.data + r * fixed.row_step;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    }
    results[m] = sum;
  }
}

#if defined(__x86_64__)
#define PERMAFROST_AVX512 __attribute__((target("avx512f")))

// Returns the sums of the elements of 16 vectors, in order: halves of pairs are added until one vector is left.
PERMAFROST_AVX512 inline __m512 SumsOf(const __m512* vectors) {
  __m512 quads[4];
  for (int q = 0; q < 4; ++q) {
    const __m512* of = vectors + 4 * q;
    const __m512 first = _mm512_add_ps(_mm512_unpacklo_ps(of[0], of[1]), _mm512_unpackhi_ps(of[0], of[1]));
    const __m512 second = _mm512_add_ps(_mm512_unpacklo_ps(of[2], of[3]), _mm512_unpackhi_ps(of[2], of[3]));
    const __m512d a = _mm512_castps_pd(first), b = _mm512_castps_pd(second);
    quads[q] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  constexpr int kEven = 0x88, kOdd = 0xdd;
  const __m512 low =
      _mm512_add_ps(_mm512_shuffle_f32x4(quads[0], quads[1], kEven), _mm512_shuffle_f32x4(quads[0], quads[1], kOdd));
  const __m512 high =
      _mm512_add_ps(_mm512_shuffle_f32x4(quads[2], quads[3], kEven), _mm512_shuffle_f32x4(quads[2], quads[3], kOdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(low, high, kEven), _mm512_shuffle_f32x4(low, high, kOdd));
}

// Computes several results at a time, so that their additions do not wait for each other.
template <int kMoves>
PERMAFROST_AVX512 inline void ProductsAtOnce(int64_t move_step, int64_t rows, int64_t count, Block moving, Block fixed,
                                             float* results) {
  __m512 sums[kMoves];
  for (int m = 0; m < kMoves; ++m) sums[m] = _mm512_setzero_ps();
  for (int64_t r = 0; r < rows; ++r) {
    const float* a = moving.data + r * moving.row_step;
    const float* b = fixed.data + r * fixed.row_step;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m512 x = _mm512_loadu_ps(b + i);
      for (int m = 0; m < kMoves; ++m) {
        sums[m] = _mm512_fmadd_ps(_mm512_loadu_ps(a + m * move_step + i), x, sums[m]);
      }
    }
    if (i == count) continue;
    const auto mask = static_cast<__mmask16>((1u << (count - i)) - 1);
    const __m512 x = _mm512_maskz_loadu_ps(mask, b + i);
    for (int m = 0; m < kMoves; ++m) {
      sums[m] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, a + m * move_step + i), x, sums[m]);
    }
  }
  if constexpr (kMoves == 16) {
    _mm512_storeu_ps(results, SumsOf(sums));
  } else {
    for (int m = 0; m < kMoves; ++m) results[m] = _mm512_reduce_add_ps(sums[m]);
  }
}

PERMAFROST_AVX512 void MovingProducts512(int64_t moves, int64_t move_step, int64_t rows, int64_t count, Block moving,
                                         Block fixed, float* results) {
  int64_t m = 0;
  for (; m + 16 <= moves; m += 16) {
    ProductsAtOnce<16>(move_step, rows, count, {moving.data + m * move_step, moving.row_step}, fixed, results + m);
  }
  for (; m + 4 <= moves; m += 4) {
    ProductsAtOnce<4>(move_step, rows, count, {moving.data + m * move_step, moving.row_step}, fixed, results + m);
  }
  for (; m < moves; ++m) {
    ProductsAtOnce<1>(move_step, rows, count, {moving.data + m * move_step, moving.row_step}, fixed, results + m);
  }
}

PERMAFROST_AVX512 void MixPixels512(int64_t channels, const float* from, absl::Span<const Tap> taps, float* to) {
  for (const Tap& tap : taps) {
    const float *lower = from + tap.lower * channels, *upper = from + tap.upper * channels;
    const __m512 fraction = _mm512_set1_ps(tap.fraction);
    int64_t c = 0;
    for (; c + 16 <= channels; c += 16) {
      const __m512 a = _mm512_loadu_ps(lower + c), b = _mm512_loadu_ps(upper + c);
      _mm512_storeu_ps(to + c, _mm512_fmadd_ps(_mm512_sub_ps(b, a), fraction, a));
    }
    if (c < channels) {
      const auto mask = static_cast<__mmask16>((1u << (channels - c)) - 1);
      const __m512 a = _mm512_maskz_loadu_ps(mask, lower + c), b = _mm512_maskz_loadu_ps(mask, upper + c);
      _mm512_mask_storeu_ps(to + c, mask, _mm512_fmadd_ps(_mm512_sub_ps(b, a), fraction, a));
    }
    to += channels;
  }
}
#endif

}  // namespace

void ToBf16(int64_t count, const float* from, uint16_t* to) {
  RoundToBf16(count, reinterpret_cast<const uint32_t*>(from), to);
}

void FromBf16(int64_t count, const uint16_t* from, float* to) {
  WidenBf16(count, from, reinterpret_cast<uint32_t*>(to));
}

void ToU8(int64_t count, float scale, const float* from, uint8_t* to) { RoundToU8(count, 1.0f / scale, from, to); }
void ToS8(int64_t count, float scale, const float* from, int8_t* to) { RoundToS8(count, 1.0f / scale, from, to); }
void FromU8(int64_t count, float scale, const uint8_t* from, float* to) { WidenU8(count, scale, from, to); }
void FromS8(int64_t count, float scale, const int8_t* from, float* to) { WidenS8(count, scale, from, to); }

namespace {

#if defined(__x86_64__)
bool HasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}
#endif

}  // namespace

void MixLine(const Tap& row, absl::Span<const Tap> columns, int64_t width, int64_t channels, const float* image,
             float* scratch, float* to) {
  const int64_t line = width * channels;
  MixLines(line, row.fraction, image + row.lower * line, image + row.upper * line, scratch);
#if defined(__x86_64__)
  if (HasAvx512()) return MixPixels512(channels, scratch, columns, to);
#endif
  MixPixelsAnywhere(channels, scratch, columns, to);
}

void MovingProducts(int64_t moves, int64_t move_step, int64_t rows, int64_t count, Block moving, Block fixed,
                    float* results) {
#if defined(__x86_64__)
  if (HasAvx512()) return MovingProducts512(moves, move_step, rows, count, moving, fixed, results);
#endif
  MovingProductsAnywhere(moves, move_step, rows, count, moving, fixed, results);
}

float SumOf(int64_t count, const float* x) { return SumAnywhere(count, x); }

bool SoftmaxOf(int64_t rows, int64_t count, const float* x, float* y) {
  // Rows that stay in the L1 cache between the passes.
  constexpr int64_t kFloatsAtOnce = 4096;
  const int64_t block = std::max<int64_t>(1, kFloatsAtOnce / count);
  bool is_number = true;
  for (int64_t r = 0; r < rows; r += block) {
    const int64_t now = std::min(block, rows - r);
    SubtractMost(now, count, x + r * count, y + r * count);
    BestInnerLoops().exp(now * count, y + r * count, y + r * count);
    is_number = DivideBySums(now, count, y + r * count) && is_number;
  }
  return is_number;
}

void NormalizeOf(int64_t count, bool is_centred, float epsilon, const float* x, const float* factor,
                 const float* offset, float* y) {
  const auto size = static_cast<float>(count);
  const float mean = is_centred ? SumAnywhere(count, x) / size : 0.0f;
  const float variance = SquaresAround(count, mean, x) / size;
  FinishNormalize(count, mean, 1.0f / std::sqrt(variance + epsilon), x, factor, offset, y);
}

void SelectOf(int64_t count, const bool* condition, int64_t condition_step, const float* a, int64_t a_step,
              const float* b, int64_t b_step, float* y) {
  if (condition_step == 1 && a_step == 1 && b_step == 1) return SelectSame(count, condition, a, b, y);
  for (int64_t i = 0; i < count; ++i) y[i] = condition[i * condition_step] ? a[i * a_step] : b[i * b_step];
}

bool HasNonFinite(const char* floats, int64_t count) { return CountNonFinite(floats, count) != 0; }

absl::string_view NameOf(LoopOp op) {
  static constexpr absl::string_view kNames[] = {
#define LOOP_UNARY(name, text, expression) text,
#define LOOP_BINARY(name, text, expression) text,
#define LOOP_FUNCTION(name, text) text,
#include "runtime_check/delegates/onednn/loop_ops.def"
  };
  return kNames[static_cast<int>(op)];
}

void RunLoop(LoopOp op, int64_t count, const float* a, const float* b, float alpha, float beta, float* y) {
  switch (op) {
#define LOOP_FUNCTION(name, text) \
  case LoopOp::k##name:           \
    return name(count, a, b, alpha, beta, y);
#define LOOP_UNARY(name, text, expression) LOOP_FUNCTION(name, text)
#define LOOP_BINARY(name, text, expression) LOOP_FUNCTION(name, text)
#include "runtime_check/delegates/onednn/loop_ops.def"
  }
}

}  // namespace onednn
}  // namespace permafrost

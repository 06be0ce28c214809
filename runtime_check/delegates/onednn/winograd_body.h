// The body of the Winograd transforms, included by each winograd_<set>.cc inside its own namespace and under its own
// target. Deliberately without include guard and includes. The including file defines PERMAFROST_VECTOR_FLOATS, the
// floats in a register.
//
// With M(x) = x * product of (x^2 - p^2), the source is transformed by the coefficients of M(x)/x for the point zero,
// of M(x)/(x - p) = (x + p) * x * (product without p) for the point p, and of M(x) for infinity. Points +p and -p share
// the even and the odd half of their sums. All coefficients are exact in floats.

using Vector = float __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float))));
using IntVector = int32_t __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float))));
using MemoryVector =
    float __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float)), aligned(alignof(float)), may_alias));

constexpr int kFloats = PERMAFROST_VECTOR_FLOATS;

// Vectors are passed through memory at calls, so these functions must be inlined.
#define PERMAFROST_INLINE __attribute__((always_inline)) inline

PERMAFROST_INLINE Vector Load(const float* p) { return *reinterpret_cast<const MemoryVector*>(p); }
PERMAFROST_INLINE void Store(Vector v, float* p) { *reinterpret_cast<MemoryVector*>(p) = v; }
PERMAFROST_INLINE Vector Broadcast(float x) { return x - Vector{}; }

// Loads and stores the first `count` floats if kIsPart.
template <bool kIsPart>
PERMAFROST_INLINE Vector LoadPart(const float* p, int64_t count) {
  if constexpr (!kIsPart) return Load(p);
  float part[kFloats] = {};
  for (int64_t i = 0; i < count; ++i) part[i] = p[i];
  return Load(part);
}
template <bool kIsPart>
PERMAFROST_INLINE void StorePart(Vector v, int64_t count, float* p) {
  if constexpr (!kIsPart) return Store(v, p);
  float part[kFloats];
  Store(v, part);
  for (int64_t i = 0; i < count; ++i) p[i] = part[i];
}

template <int kPairs>
PERMAFROST_INLINE void TransformPixels(const Vector* d, Vector* values) {
  constexpr int kPoints = 2 * kPairs + 2;
  constexpr EvenPolynomial kAll = ProductOfPairs<kPairs>(-1);
  Vector zero = d[0] * static_cast<float>(kAll.of[0]), infinity = d[1] * static_cast<float>(kAll.of[0]);
#pragma GCC unroll 4
  for (int k = 1; k <= kPairs; ++k) {
    zero += d[2 * k] * static_cast<float>(kAll.of[k]);
    infinity += d[2 * k + 1] * static_cast<float>(kAll.of[k]);
  }
  values[0] = zero;
  values[kPoints - 1] = infinity;
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
    const EvenPolynomial others = ProductOfPairs<kPairs>(i);
    const auto point = static_cast<float>(WinogradPoints<kPairs>::kPair[i]);
    Vector even = d[2] * static_cast<float>(others.of[0]), odd = d[1] * static_cast<float>(others.of[0]);
#pragma GCC unroll 4
    for (int k = 1; k < kPairs; ++k) {
      even += d[2 * k + 2] * static_cast<float>(others.of[k]);
      odd += d[2 * k + 1] * static_cast<float>(others.of[k]);
    }
    values[1 + 2 * i] = even + odd * point;
    values[2 + 2 * i] = even - odd * point;
  }
}

template <int kPairs, int kOutputs>
PERMAFROST_INLINE void TransformSums(const Vector* sums, Vector* results) {
  constexpr int kPoints = 2 * kPairs + 2;
  Vector even[kPairs], odd[kPairs];
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
    even[i] = sums[1 + 2 * i] + sums[2 + 2 * i];
    odd[i] = sums[1 + 2 * i] - sums[2 + 2 * i];
  }
#pragma GCC unroll 8
  for (int j = 0; j < kOutputs; ++j) {
    Vector result = j == 0 ? sums[0] : Vector{};
    if (j == kOutputs - 1) result += sums[kPoints - 1];
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const auto power = static_cast<float>(PowerOf(WinogradPoints<kPairs>::kPair[i], j));
      result += (j % 2 == 0 ? even[i] : odd[i]) * power;
    }
    results[j] = result;
  }
}

constexpr int PairsOf(int points) { return points == 1 ? 0 : (points - 2) / 2; }

template <int kPointsY, int kPointsX, bool kIsPart>
PERMAFROST_INLINE void TransformSourceVector(const WinogradSource& source, const float* pixels, int64_t count,
                                             float* values) {
  Vector buffer[kPointsY][kPointsX];
#pragma GCC unroll 8
  for (int x = 0; x < kPointsX; ++x) {
    Vector column[kPointsY], transformed[kPointsY];
#pragma GCC unroll 8
    for (int y = 0; y < kPointsY; ++y) {
      column[y] = LoadPart<kIsPart>(pixels + y * source.row_step + x * source.pixel_step, count);
    }
    if constexpr (kPointsY == 1) {
      buffer[0][x] = column[0];
    } else {
      TransformPixels<PairsOf(kPointsY)>(column, transformed);
#pragma GCC unroll 8
      for (int y = 0; y < kPointsY; ++y) buffer[y][x] = transformed[y];
    }
  }
#pragma GCC unroll 8
  for (int y = 0; y < kPointsY; ++y) {
    Vector row[kPointsX];
    if constexpr (kPointsX == 1) {
      row[0] = buffer[y][0];
    } else {
      TransformPixels<PairsOf(kPointsX)>(buffer[y], row);
    }
#pragma GCC unroll 8
    for (int x = 0; x < kPointsX; ++x) Store(row[x], values + (y * kPointsX + x) * source.point_step);
  }
}

template <int kPointsY, int kPointsX>
void TransformSource(const WinogradSource& source) {
  int64_t c = 0;
  for (; c + kFloats <= source.channels; c += kFloats) {
    TransformSourceVector<kPointsY, kPointsX, false>(source, source.pixels + c, kFloats, source.values + c);
  }
  if (c == source.channels) return;
  TransformSourceVector<kPointsY, kPointsX, true>(source, source.pixels + c, source.channels - c, source.values + c);
}

using DoubleVector = double __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(double))));

// Transforms filters in double precision: their error would add to that of the sums.
template <int kPointsY, int kTapsY, int kPointsX, int kTapsX, bool kIsPart>
PERMAFROST_INLINE void TransformFilterVector(const WinogradFilter& filter, int64_t k, int64_t count) {
  DoubleVector taps[kTapsY][kTapsX];
  const Vector scale = filter.scale == nullptr ? Broadcast(1) : LoadPart<kIsPart>(filter.scale + k, count);
  for (int y = 0; y < kTapsY; ++y) {
    for (int x = 0; x < kTapsX; ++x) {
      const Vector tap = LoadPart<kIsPart>(filter.taps + (y * kTapsX + x) * filter.tap_step + k, count) * scale;
      taps[y][x] = __builtin_convertvector(tap, DoubleVector);
    }
  }
  for (int i = 0; i < kPointsY; ++i) {
    DoubleVector row[kTapsX] = {};
    for (int x = 0; x < kTapsX; ++x) {
      if constexpr (kPointsY == 1) {
        row[x] = taps[0][x];
      } else {
        for (int y = 0; y < kTapsY; ++y) row[x] += taps[y][x] * FilterFactor<PairsOf(kPointsY)>(i, y, kTapsY);
      }
    }
    for (int j = 0; j < kPointsX; ++j) {
      DoubleVector value = row[0];
      if constexpr (kPointsX > 1) {
        value = DoubleVector{};
        for (int x = 0; x < kTapsX; ++x) value += row[x] * FilterFactor<PairsOf(kPointsX)>(j, x, kTapsX);
      }
      Store(__builtin_convertvector(value, Vector), filter.values + (i * kPointsX + j) * filter.point_step + k);
    }
  }
}

template <int kPointsY, int kTapsY, int kPointsX, int kTapsX>
void TransformFilter(const WinogradFilter& filter) {
  int64_t k = 0;
  for (; k + kFloats <= filter.channels; k += kFloats) {
    TransformFilterVector<kPointsY, kTapsY, kPointsX, kTapsX, false>(filter, k, kFloats);
  }
  if (k == filter.channels) return;
  TransformFilterVector<kPointsY, kTapsY, kPointsX, kTapsX, true>(filter, k, filter.channels - k);
}

template <int kPointsY, int kOutputsY, int kPointsX, int kOutputsX, bool kIsPart>
PERMAFROST_INLINE void TransformTargetVector(const WinogradTarget& target, int64_t c, int64_t count, Vector* check) {
  Vector buffer[kOutputsX][kPointsY];
#pragma GCC unroll 8
  for (int y = 0; y < kPointsY; ++y) {
    Vector row[kPointsX], sums[kOutputsX];
#pragma GCC unroll 8
    for (int x = 0; x < kPointsX; ++x) row[x] = Load(target.sums + c + (y * kPointsX + x) * target.point_step);
    if constexpr (kPointsX == 1) {
      sums[0] = row[0];
    } else {
      TransformSums<PairsOf(kPointsX), kOutputsX>(row, sums);
    }
#pragma GCC unroll 8
    for (int x = 0; x < kOutputsX; ++x) buffer[x][y] = sums[x];
  }
  const Vector bias = Load(target.bias + c);
#pragma GCC unroll 8
  for (int x = 0; x < kOutputsX; ++x) {
    Vector results[kOutputsY];
    if constexpr (kPointsY == 1) {
      results[0] = buffer[x][0];
    } else {
      TransformSums<PairsOf(kPointsY), kOutputsY>(buffer[x], results);
    }
    if (x >= target.columns) break;
#pragma GCC unroll 8
    for (int y = 0; y < kOutputsY; ++y) {
      if (y >= target.rows) break;
      Vector result = results[y] + bias;
      *check += result * Vector{};  // NaN if the result is not finite.
      const int64_t offset = y * target.row_step + x * target.pixel_step + c;
      if (target.addends != nullptr) result += LoadPart<kIsPart>(target.addends + offset, count);
      if (target.slopes != nullptr) result = result < 0.f ? result * Load(target.slopes + c) : result;
      const Vector least = Broadcast(target.least), most = Broadcast(target.most);
      result = result > least ? result : least;
      result = result < most ? result : most;
      StorePart<kIsPart>(result, count, target.results + offset);
    }
  }
}

template <int kPointsY, int kOutputsY, int kPointsX, int kOutputsX>
bool TransformTarget(const WinogradTarget& target) {
  Vector check = {};
  int64_t c = 0;
  for (; c + kFloats <= target.channels; c += kFloats) {
    TransformTargetVector<kPointsY, kOutputsY, kPointsX, kOutputsX, false>(target, c, kFloats, &check);
  }
  if (c < target.channels) {
    TransformTargetVector<kPointsY, kOutputsY, kPointsX, kOutputsX, true>(target, c, target.channels - c, &check);
  }
  bool is_finite = true;
  for (int i = 0; i < kFloats; ++i) is_finite = is_finite && check[i] == 0;
  return is_finite;
}

template <int kOutputsY, int kTapsY, int kOutputsX, int kTapsX>
constexpr WinogradLoops LoopsOf() {
  constexpr int kPointsY = kOutputsY + kTapsY - 1, kPointsX = kOutputsX + kTapsX - 1;
  return {{{kOutputsY, kTapsY}, {kOutputsX, kTapsX}},
          TransformFilter<kPointsY, kTapsY, kPointsX, kTapsX>,
          TransformSource<kPointsY, kPointsX>,
          TransformTarget<kPointsY, kOutputsY, kPointsX, kOutputsX>};
}

constexpr WinogradLoops kLoops[] = {
    LoopsOf<2, 3, 2, 3>(), LoopsOf<4, 3, 4, 3>(), LoopsOf<2, 5, 2, 5>(),                         //
    LoopsOf<1, 1, 2, 3>(), LoopsOf<1, 1, 4, 3>(), LoopsOf<1, 1, 6, 3>(), LoopsOf<1, 1, 2, 5>(),  //
    LoopsOf<1, 1, 4, 5>(), LoopsOf<1, 1, 2, 7>(),                                                //
    LoopsOf<2, 3, 1, 1>(), LoopsOf<4, 3, 1, 1>(), LoopsOf<6, 3, 1, 1>(), LoopsOf<2, 5, 1, 1>(),  //
    LoopsOf<4, 5, 1, 1>(), LoopsOf<2, 7, 1, 1>(),
};

#undef PERMAFROST_INLINE

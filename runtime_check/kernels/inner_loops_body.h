// The body of the inner loops, included by each inner_loops_<set>.cc inside its own namespace and under its own target.
// Deliberately without include guard and includes. The including file defines
//
//   PERMAFROST_VECTOR_FLOATS   floats in a register
//   PERMAFROST_TILE_ROWS       rows of a register tile. A tile uses two registers per row for sums, two for the right
//                              matrix and one for the element of the left one. The value is the maximum for the
//                              register file: 14 rows for 32 registers, 6 rows for 16 registers, or 4 rows without
//                              fused multiply-add, where a product takes another register

using Vector = float __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float))));
using IntVector = int32_t __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float))));
// The same type without alignment, for memory accesses.
using MemoryVector =
    float __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float)), aligned(alignof(float)), may_alias));

constexpr int kFloats = PERMAFROST_VECTOR_FLOATS;
constexpr int kTileRows = PERMAFROST_TILE_ROWS;

inline Vector Load(const float* p) { return *reinterpret_cast<const MemoryVector*>(p); }
inline void Store(Vector v, float* p) { *reinterpret_cast<MemoryVector*>(p) = v; }
// Subtracts 0, since adding 0 would change -0.
inline Vector Broadcast(float x) { return x - Vector{}; }

// --- Matrix product --------------------------------------------------------------------------------------------------

// Computes a register tile of kRows rows of kVectors registers. One pointer addresses five rows of `a`, since x86
// addresses base, base + s, base + 2s, base + 4s and, with 3s in a register, base + 3s. Fifteen rows so need few
// registers.
template <int kRows, int kVectors>
inline void Tile(int64_t depth, const float* __restrict a, int64_t a_stride, const float* __restrict b,
                 float* __restrict c, int64_t c_stride, bool accumulate) {
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = Vector{};
      if (accumulate) sum[r][v] = Load(c + r * c_stride + v * kFloats);
    }
  }
  const float* a5 = a + (kRows > 5 ? 5 : 0) * a_stride;
  const float* a10 = a + (kRows > 10 ? 10 : 0) * a_stride;
  for (int64_t k = 0; k < depth; ++k) {
    Vector right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = Load(b + v * kFloats);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float* base = r < 5 ? a : r < 10 ? a5 : a10;
      const Vector left = Broadcast(base[(r % 5) * a_stride]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] += left * right[v];
    }
    ++a;
    ++a5;
    ++a10;
    b += kVectors * kFloats;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Store(sum[r][v], c + r * c_stride + v * kFloats);
  }
}

// Calls the tile with `rows` rows, which is at most kRows.
template <int kRows, int kVectors>
void TileOfRows(int rows, int64_t depth, const float* a, int64_t a_stride, const float* b, float* c, int64_t c_stride,
                bool accumulate) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return TileOfRows<kRows - 1, kVectors>(rows, depth, a, a_stride, b, c, c_stride, accumulate);
    }
  }
  Tile<kRows, kVectors>(depth, a, a_stride, b, c, c_stride, accumulate);
}

template <int kVectors>
void MultiplyPanelOf(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride, const float* b,
                     float* c, int64_t c_stride, bool accumulate) {
  constexpr int kWidth = kVectors * kFloats;
  while (rows > 0) {
    // The last two tiles share their rows evenly: in a tile of one row, each addition waits for the previous one.
    int64_t now = rows;
    if (rows > kTileRows) now = rows < 2 * kTileRows ? (rows + 1) / 2 : kTileRows;
    if (columns == kWidth) {
      TileOfRows<kTileRows, kVectors>(static_cast<int>(now), depth, a, a_stride, b, c, c_stride, accumulate);
    } else {
      // A tile that extends past the edge of the result goes through a buffer.
      float whole[kTileRows * kWidth];
      if (accumulate) {
        for (int64_t r = 0; r < now; ++r) {
          for (int64_t j = 0; j < kWidth; ++j) whole[r * kWidth + j] = j < columns ? c[r * c_stride + j] : 0.f;
        }
      }
      TileOfRows<kTileRows, kVectors>(static_cast<int>(now), depth, a, a_stride, b, whole, kWidth, accumulate);
      for (int64_t r = 0; r < now; ++r) {
        for (int64_t j = 0; j < columns; ++j) c[r * c_stride + j] = whole[r * kWidth + j];
      }
    }
    rows -= now;
    a += now * a_stride;
    c += now * c_stride;
  }
}

void MultiplyPanel(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride, const float* b,
                   float* c, int64_t c_stride, bool accumulate) {
  if (columns <= kFloats) {
    MultiplyPanelOf<1>(rows, columns, depth, a, a_stride, b, c, c_stride, accumulate);
  } else {
    MultiplyPanelOf<2>(rows, columns, depth, a, a_stride, b, c, c_stride, accumulate);
  }
}

// --- Depthwise convolution -------------------------------------------------------------------------------------------

// Vectors of any width, for the tail of channels that does not fill a register. GCC ignores a vector size that depends
// on a template parameter if another attribute is present, so there is no type for unaligned memory.
template <int kWidth>
struct Lanes {
  typedef float Register __attribute__((vector_size(kWidth * sizeof(float))));
  static_assert(sizeof(Register) == kWidth * sizeof(float));
  static Register Load(const float* p) {
    Register v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void Store(Register v, float* p) { __builtin_memcpy(p, &v, sizeof(v)); }
};

// Computes kPixels output pixels for as many channels as a register of kWidth floats holds.
template <int kPixels, int kWidth>
inline void DepthwiseRegister(const DepthwiseWindow& w, const float* input, const float* filter, float* output) {
  using L = Lanes<kWidth>;
  typename L::Register sum[kPixels] = {};
  for (int64_t y = 0; y < w.taps_y; ++y) {
    const float* in = input + y * w.row_step;
    const float* f = filter + y * w.filter_row_step;
    for (int64_t x = 0; x < w.taps_x; ++x) {
      const typename L::Register f0 = L::Load(f);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) sum[p] += L::Load(in + p * w.pixel_step) * f0;
      in += w.tap_step;
      f += w.filter_tap_step;
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) L::Store(sum[p], output + p * w.channels);
}

// Computes kPixels output pixels at once, to share the loads of the filter.
template <int kPixels>
inline void DepthwisePixels(const DepthwiseWindow& w, const float* input, const float* filter, float* output) {
  int64_t c = 0;
  for (; c + 2 * kFloats <= w.channels; c += 2 * kFloats) {
    Vector sum[kPixels][2] = {};
    for (int64_t y = 0; y < w.taps_y; ++y) {
      const float* in = input + y * w.row_step + c;
      const float* f = filter + y * w.filter_row_step + c;
      for (int64_t x = 0; x < w.taps_x; ++x) {
        const Vector f0 = Load(f), f1 = Load(f + kFloats);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p) {
          sum[p][0] += Load(in + p * w.pixel_step) * f0;
          sum[p][1] += Load(in + p * w.pixel_step + kFloats) * f1;
        }
        in += w.tap_step;
        f += w.filter_tap_step;
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      Store(sum[p][0], output + p * w.channels + c);
      Store(sum[p][1], output + p * w.channels + c + kFloats);
    }
  }
  for (; c + kFloats <= w.channels; c += kFloats) {
    DepthwiseRegister<kPixels, kFloats>(w, input + c, filter + c, output + c);
  }
  if constexpr (kFloats > 8) {
    if (c + 8 <= w.channels) {
      DepthwiseRegister<kPixels, 8>(w, input + c, filter + c, output + c);
      c += 8;
    }
  }
  if constexpr (kFloats > 4) {
    if (c + 4 <= w.channels) {
      DepthwiseRegister<kPixels, 4>(w, input + c, filter + c, output + c);
      c += 4;
    }
  }
  for (; c < w.channels; ++c) {
    for (int p = 0; p < kPixels; ++p) {
      float sum = 0;
      for (int64_t y = 0; y < w.taps_y; ++y) {
        const float* in = input + y * w.row_step + p * w.pixel_step + c;
        const float* f = filter + y * w.filter_row_step + c;
        for (int64_t x = 0; x < w.taps_x; ++x) sum += in[x * w.tap_step] * f[x * w.filter_tap_step];
      }
      output[p * w.channels + c] = sum;
    }
  }
}

void Depthwise(const DepthwiseWindow& w, int64_t pixels, const float* input, const float* filter, float* output) {
  int64_t p = 0;
  for (; p + 4 <= pixels; p += 4) DepthwisePixels<4>(w, input + p * w.pixel_step, filter, output + p * w.channels);
  for (; p < pixels; ++p) DepthwisePixels<1>(w, input + p * w.pixel_step, filter, output + p * w.channels);
}

// --- Element by element ----------------------------------------------------------------------------------------------

// Computes y[i] = f(x[i]) where f maps registers; the tail goes through a buffer.
template <typename F>
inline void Map(int64_t count, const float* x, float* y, F f) {
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) Store(f(Load(x + i)), y + i);
  if (i == count) return;
  float rest[kFloats] = {};
  for (int64_t j = i; j < count; ++j) rest[j - i] = x[j];
  Store(f(Load(rest)), rest);
  for (int64_t j = i; j < count; ++j) y[j] = rest[j - i];
}

// Computes y[i] = f(a[i], b[i]).
template <typename F>
inline void Map(int64_t count, const float* a, const float* b, float* y, F f) {
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) Store(f(Load(a + i), Load(b + i)), y + i);
  if (i == count) return;
  float rest_a[kFloats] = {}, rest_b[kFloats] = {};
  for (int64_t j = i; j < count; ++j) {
    rest_a[j - i] = a[j];
    rest_b[j - i] = b[j];
  }
  Store(f(Load(rest_a), Load(rest_b)), rest_a);
  for (int64_t j = i; j < count; ++j) y[j] = rest_a[j - i];
}

void AddTo(int64_t count, const float* x, float* y) {
  Map(count, x, y, y, [=](Vector a, Vector b) { return a + b; });
}
void MaxTo(int64_t count, const float* x, float* y) {
  Map(count, x, y, y, [=](Vector a, Vector b) { return a > b ? a : b; });
}
void Scale(int64_t count, float factor, float* y) {
  Map(count, y, y, [factor](Vector a) { return a * factor; });
}
void AddScaled(int64_t count, float factor, const float* x, float* y) {
  Map(count, x, y, y, [factor](Vector a, Vector b) { return b + a * factor; });
}
void Add(int64_t count, const float* a, const float* b, float* y) {
  Map(count, a, b, y, [=](Vector p, Vector q) { return p + q; });
}
void AddScalar(int64_t count, const float* x, float b, float* y) {
  Map(count, x, y, [b](Vector a) { return a + b; });
}
void Normalize(int64_t count, const float* x, const float* mean, const float* factor, const float* offset, float* y) {
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) {
    Store((Load(x + i) - Load(mean + i)) * Load(factor + i) + Load(offset + i), y + i);
  }
  for (; i < count; ++i) y[i] = (x[i] - mean[i]) * factor[i] + offset[i];
}
void NormalizeAll(int64_t count, const float* x, float mean, float factor, float offset, float* y) {
  Map(count, x, y, [=](Vector a) { return (a - mean) * factor + offset; });
}
void Relu(int64_t count, const float* x, float* y) {
  Map(count, x, y, [=](Vector a) { return a < 0 ? Vector{} : a; });
}
void Relu6(int64_t count, const float* x, float* y) {
  Map(count, x, y, [=](Vector a) {
    a = a < 0 ? Vector{} : a;
    return a > 6 ? Broadcast(6.f) : a;
  });
}
void LeakyRelu(int64_t count, float alpha, const float* x, float* y) {
  Map(count, x, y, [alpha](Vector a) { return a < 0 ? a * alpha : a; });
}

// Computes exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2. ln 2 is subtracted in two parts, of which
// the first has 9 bits, so that its product with n is exact. exp(r) is a polynomial of degree 7, as accurate as float
// coefficients allow. 2^n is applied as two factors, to cover both ends of the range of n: denormals, and overflow to
// infinity.
inline Vector Exp(Vector x) {
  const Vector low = Broadcast(-104.f), high = Broadcast(89.f);  // exp is 0 below, infinite above.
  Vector bounded = x < low ? low : x;
  bounded = bounded > high ? high : bounded;            // NaN propagates.
  const Vector kRoundingShift = Broadcast(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer.
  const Vector shifted = bounded * 1.44269504f + kRoundingShift;
  const Vector n = shifted - kRoundingShift;
  Vector r = bounded - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vector p = Broadcast(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  const IntVector integer = reinterpret_cast<IntVector>(shifted) - 0x4b400000;
  const IntVector half = integer >> 1;
  const Vector first = reinterpret_cast<Vector>((half + 127) << 23);
  const Vector second = reinterpret_cast<Vector>((integer - half + 127) << 23);
  const Vector result = p * first * second;
  return x != x ? x : result;
}

void ExpAll(int64_t count, const float* x, float* y) {
  Map(count, x, y, [=](Vector a) { return Exp(a); });
}
void Sigmoid(int64_t count, const float* x, float* y) {
  Map(count, x, y, [=](Vector a) { return 1.f / (1.f + Exp(-a)); });
}
// Near 0, where 1 - 2 / (exp(2x) + 1) cancels, an odd polynomial (|x| < 0.625, 2^-24 relative).
void Tanh(int64_t count, const float* x, float* y) {
  Map(count, x, y, [=](Vector a) {
    const Vector far = 1.f - 2.f / (Exp(a + a) + 1.f);
    const Vector s = a * a;
    Vector p = Broadcast(-5.70498872745e-3f);
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    const Vector near = p * s * a + a;
    return s < 0.390625f ? near : far;
  });
}

// Returns the table of loops; a loop that a selective build does not need is null.
constexpr InnerLoops Table(const char* name) {
  constexpr bool kBehindOthers = selection::kHoldsFusedOps || selection::kHoldsDelegates;
  constexpr bool kRecurs = selection::HoldsAnyOp({"TFLiteLSTM", "TFLiteRNN"});
  constexpr bool kNormalizes = selection::HoldsAnyOp(
      {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "BatchNormWithGlobalNormalization"});
  return {name,
          kFloats,
          2 * kFloats,
          kTileRows,
          MultiplyPanel,
          selection::HoldsAnyOp({"DepthwiseConv2dNative"}) || kBehindOthers ? Depthwise : nullptr,
          AddTo,
          MaxTo,
          Scale,
          AddScaled,
          Add,
          AddScalar,
          kNormalizes || kBehindOthers ? Normalize : nullptr,
          kNormalizes ? NormalizeAll : nullptr,
          kBehindOthers || selection::HoldsOp("Relu") ? Relu : nullptr,
          kBehindOthers || selection::HoldsOp("Relu6") ? Relu6 : nullptr,
          kBehindOthers || selection::HoldsOp("LeakyRelu") ? LeakyRelu : nullptr,
          ExpAll,
          kBehindOthers || kRecurs || selection::HoldsOp("Sigmoid") ? Sigmoid : nullptr,
          kBehindOthers || kRecurs || selection::HoldsOp("Tanh") ? Tanh : nullptr};
}

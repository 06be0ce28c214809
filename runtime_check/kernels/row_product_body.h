// The body of the row product, included by each row_product_<set>.cc inside its own namespace and under its own target.
// Deliberately without include guard and includes. The including file defines PERMAFROST_VECTOR_FLOATS, the floats in a
// register.

using Vector = float __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float))));
using MemoryVector =
    float __attribute__((vector_size(PERMAFROST_VECTOR_FLOATS * sizeof(float)), aligned(alignof(float)), may_alias));

constexpr int kFloats = PERMAFROST_VECTOR_FLOATS;

inline Vector Load(const float* p) { return *reinterpret_cast<const MemoryVector*>(p); }
inline void Store(Vector v, float* p) { *reinterpret_cast<MemoryVector*>(p) = v; }

// Multiplies the row with kPanels panels of two registers.
template <int kPanels>
inline void MultiplyPanels(int64_t depth, const float* __restrict a, const float* __restrict b, int64_t panel_step,
                           float* __restrict c, bool accumulate) {
  Vector sum[kPanels][2];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      sum[p][v] = Vector{};
      if (accumulate) sum[p][v] = Load(c + (2 * p + v) * kFloats);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    const Vector left = a[k] - Vector{};
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) sum[p][v] += left * Load(b + p * panel_step + v * kFloats);
    }
    b += 2 * kFloats;
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) Store(sum[p][v], c + (2 * p + v) * kFloats);
  }
}

void MultiplyRow(int64_t panels, int64_t depth, const float* a, const float* b, int64_t panel_step, float* c,
                 bool accumulate) {
  for (; panels >= 4; panels -= 4) {
    MultiplyPanels<4>(depth, a, b, panel_step, c, accumulate);
    b += 4 * panel_step;
    c += 8 * kFloats;
  }
  for (; panels >= 2; panels -= 2) {
    MultiplyPanels<2>(depth, a, b, panel_step, c, accumulate);
    b += 2 * panel_step;
    c += 4 * kFloats;
  }
  if (panels > 0) MultiplyPanels<1>(depth, a, b, panel_step, c, accumulate);
}

// Selects the row product for the machine, and the elementwise loops over rows.
#include "runtime_check/kernels/row_product.h"

#include <algorithm>

#include "graph/base/multiversion.h"
#include "graph/base/processor.h"

namespace permafrost {

namespace sse2 {
extern const RowLoops kRowLoops;
}
namespace avx2 {
extern const RowLoops kRowLoops;
}
namespace avx512 {
extern const RowLoops kRowLoops;
}

namespace {

// A thread of its own is worth 64 KB of the matrix: reading them from the second-level cache takes 2 us, several times
// as long as handing the work over.
constexpr int64_t kBytesOfThread = 64 << 10;

const RowLoops& Select() {
#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
  if (SupportedInstructionSets().avx512) return avx512::kRowLoops;
#endif
#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX2)
  if (SupportedInstructionSets().avx2_fma) return avx2::kRowLoops;
#endif
  return sse2::kRowLoops;
}

// Multiplies one row with panels [begin, end).
void MultiplyRow(const InnerLoops& loops, const PackedShape& shape, DepthRange range, const float* a,
                 const float* packed, float* c, int64_t begin, int64_t end) {
  const int64_t width = loops.panel_width, step = width * shape.depth, depth = range.end - range.begin;
  const int64_t full = std::min(end, shape.columns / width);
  if (full > begin) {
    BestRowLoops().multiply(full - begin, depth, a, packed + begin * step + range.begin * width, step,
                            c + begin * width, range.begin > 0);
  }
  if (end > std::max(full, begin)) {
    MultiplyPart(loops, 1, shape, range, a, depth, packed, c, shape.columns, std::max(full, begin), end);
  }
}

template <typename F>
PF_INLINE inline void Loop(const float* x, bool x_is_scalar, const float* y, bool y_is_scalar, float* z, int64_t count,
                           F f) {
  if (x_is_scalar && y_is_scalar) {
    std::fill_n(z, count, f(*x, *y));
  } else if (x_is_scalar) {
    const float value = *x;
    for (int64_t i = 0; i < count; ++i) z[i] = f(value, y[i]);
  } else if (y_is_scalar) {
    const float value = *y;
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], value);
  } else {
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
  }
}

template <typename F>
void Apply(const float* x, bool x_is_scalar, const float* y, bool y_is_scalar, float* z, int64_t count, F f) {
  if (count == 0) return;
  Multiversion([&]() PF_INLINE { Loop(x, x_is_scalar, y, y_is_scalar, z, count, f); });
}

}  // namespace

const RowLoops& BestRowLoops() {
  static const RowLoops& best = Select();
  return best;
}

void ParallelMultiplyPart(const InnerLoops& loops, ThreadPool& threads, int64_t rows, const PackedShape& shape,
                          DepthRange range, const float* a, int64_t a_stride, const float* packed, float* c,
                          int64_t c_stride) {
  const int64_t panels = shape.NumPanels(loops);
  const int64_t panel_bytes =
      std::max<int64_t>(1, (range.end - range.begin) * loops.panel_width * static_cast<int64_t>(sizeof(float)));
  if (rows == 1) {
    threads.ParallelFor(panels, std::max<int64_t>(1, kBytesOfThread / panel_bytes), [&](int64_t begin, int64_t end) {
      MultiplyRow(loops, shape, range, a, packed, c, begin, end);
    });
    return;
  }
  const WorkGrid grid = DivideWork(loops, rows, shape, threads.num_threads());
  ForEachPiece(threads, grid.num_pieces(), [&](int, int64_t piece) {
    const int64_t row = piece / grid.panel_groups * grid.rows_per_block;
    const int64_t panel = piece % grid.panel_groups * grid.panels_per_group;
    MultiplyPart(loops, std::min(grid.rows_per_block, rows - row), shape, range, a + row * a_stride, a_stride, packed,
                 c + row * c_stride, c_stride, panel, std::min(panel + grid.panels_per_group, panels));
  });
}

void ApplyToRow(RowFunction function, const float* x, bool x_is_scalar, const float* y, bool y_is_scalar, float* z,
                int64_t count) {
  const auto apply = [&](auto f) { Apply(x, x_is_scalar, y, y_is_scalar, z, count, f); };
  switch (function) {
    case RowFunction::kAdd:
      return apply([](float p, float q) PF_INLINE { return p + q; });
    case RowFunction::kSubtract:
      return apply([](float p, float q) PF_INLINE { return p - q; });
    case RowFunction::kMultiply:
      return apply([](float p, float q) PF_INLINE { return p * q; });
    case RowFunction::kDivide:
      return apply([](float p, float q) PF_INLINE { return p / q; });
    case RowFunction::kMaximum:
      return apply([](float p, float q) PF_INLINE {
        const float larger = p > q ? p : q;
        return p != p ? p : larger;
      });
    case RowFunction::kMinimum:
      return apply([](float p, float q) PF_INLINE {
        const float smaller = p < q ? p : q;
        return p != p ? p : smaller;
      });
    case RowFunction::kSquaredDifference:
      return apply([](float p, float q) PF_INLINE { return (p - q) * (p - q); });
  }
}

void SelectInRow(const bool* condition, bool condition_is_scalar, const float* x, bool x_is_scalar, const float* y,
                 bool y_is_scalar, float* z, int64_t count) {
  if (count == 0) return;
  if (condition_is_scalar) {
    const float* from = *condition ? x : y;
    if (*condition ? x_is_scalar : y_is_scalar) {
      std::fill_n(z, count, *from);
    } else if (from != z) {
      std::copy_n(from, count, z);
    }
    return;
  }
  const int64_t x_step = x_is_scalar ? 0 : 1, y_step = y_is_scalar ? 0 : 1;
  Multiversion([&]() PF_INLINE {
    for (int64_t i = 0; i < count; ++i) z[i] = condition[i] ? x[i * x_step] : y[i * y_step];
  });
}

}  // namespace permafrost

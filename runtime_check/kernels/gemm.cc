// Implements packing and blocking of matrix products.
#include "runtime_check/kernels/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// gemm.h explains how this value uses the L1 cache.
constexpr int64_t kDepthBlock = 192;

// 256 KB in floats: half of an L2 cache of 512 KB, so that the panels fit beside the rows.
constexpr int64_t kBlockFloats = 256 * 1024 / sizeof(float);

int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// The number of existing columns of a panel, and its width in memory.
struct Panel {
  int64_t columns;
  int64_t width;
};
Panel PanelAt(const InnerLoops& loops, const PackedShape& shape, int64_t panel) {
  const int64_t columns = std::min<int64_t>(loops.panel_width, shape.columns - panel * loops.panel_width);
  return {columns, columns <= loops.vector_floats ? loops.vector_floats : loops.panel_width};
}

}  // namespace

FloatBuffer::~FloatBuffer() { std::free(data_); }
FloatBuffer::FloatBuffer(FloatBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
FloatBuffer& FloatBuffer::operator=(FloatBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}

absl::StatusOr<FloatBuffer> FloatBuffer::Allocate(int64_t count) {
  FloatBuffer buffer;
  int64_t bytes = 0;
  if (!__builtin_mul_overflow(count, static_cast<int64_t>(sizeof(float)), &bytes) &&
      !__builtin_add_overflow(bytes, 63, &bytes)) {
    bytes = std::max<int64_t>(bytes / 64 * 64, 64);
    buffer.data_ = static_cast<float*>(std::aligned_alloc(64, bytes));
  }
  if (buffer.data_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", count, " floats"));
  }
  return buffer;
}

int64_t PackedShape::NumPanels(const InnerLoops& loops) const { return DivideUp(columns, loops.panel_width); }

absl::StatusOr<int64_t> PackedShape::Size(const InnerLoops& loops) const {
  int64_t padded = 0, size = 0, bytes = 0;
  if (__builtin_add_overflow(columns, loops.panel_width, &padded) || __builtin_mul_overflow(depth, padded, &size) ||
      __builtin_mul_overflow(size, static_cast<int64_t>(sizeof(float)), &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a matrix of ", depth, " rows and ", columns, " columns is too large"));
  }
  if (columns == 0) return 0;
  const int64_t last = NumPanels(loops) - 1;
  return depth * (last * loops.panel_width + PanelAt(loops, *this, last).width);
}

void Pack(const InnerLoops& loops, const PackedShape& shape, const float* b, int64_t row_step, int64_t column_step,
          float* packed) {
  for (int64_t p = 0; p < shape.NumPanels(loops); ++p) {
    const Panel panel = PanelAt(loops, shape, p);
    const float* first = b + p * loops.panel_width * column_step;
    for (int64_t k = 0; k < shape.depth; ++k) {
      const float* row = first + k * row_step;
      if (column_step == 1) {
        std::memcpy(packed, row, panel.columns * sizeof(float));
      } else {
        for (int64_t j = 0; j < panel.columns; ++j) packed[j] = row[j * column_step];
      }
      std::fill(packed + panel.columns, packed + panel.width, 0.f);
      packed += panel.width;
    }
  }
}

// Panels between two questions whether the run is cancelled. A panel takes at least a microsecond.
constexpr int64_t kPanelsPerBlock = 16;

void MultiplyPart(const InnerLoops& loops, int64_t rows, const PackedShape& shape, DepthRange range, const float* a,
                  int64_t a_stride, const float* packed, float* c, int64_t c_stride, int64_t panel_begin,
                  int64_t panel_end) {
  int64_t k = range.begin;
  // Runs at least once, so that a product of depth 0 writes zeros.
  do {
    const int64_t depth = std::min(kDepthBlock, range.end - k);
    for (int64_t p = panel_begin; p < panel_end; ++p) {
      if (p % kPanelsPerBlock == 0 && RunIsCancelled()) return;
      const Panel panel = PanelAt(loops, shape, p);
      const float* slab = packed + p * loops.panel_width * shape.depth + k * panel.width;
      loops.multiply_panel(rows, panel.columns, depth, a + (k - range.begin), a_stride, slab, c + p * loops.panel_width,
                           c_stride, k > 0);
    }
    k += kDepthBlock;
  } while (k < range.end);
}

void Multiply(const InnerLoops& loops, int64_t rows, const PackedShape& shape, const float* a, int64_t a_stride,
              const float* packed, float* c, int64_t c_stride, int64_t panel_begin, int64_t panel_end) {
  MultiplyPart(loops, rows, shape, {0, shape.depth}, a, a_stride, packed, c, c_stride, panel_begin, panel_end);
}

WorkGrid DivideWork(const InnerLoops& loops, int64_t rows, const PackedShape& shape, int num_threads) {
  WorkGrid grid;
  const int64_t tiles = DivideUp(rows, loops.tile_rows);
  const int64_t panels = shape.NumPanels(loops);
  if (tiles == 0 || panels == 0) return grid;
  const int64_t tile_floats = loops.tile_rows * std::max<int64_t>(shape.depth, 1);
  int64_t tiles_per_block = std::clamp<int64_t>(kBlockFloats / tile_floats, 1, tiles);
  // The same number of blocks for each thread: a last round with few busy threads would delay all.
  int64_t blocks = DivideUp(tiles, tiles_per_block);
  blocks = std::min(DivideUp(blocks, num_threads) * num_threads, tiles);
  tiles_per_block = DivideUp(tiles, blocks);
  grid.rows_per_block = std::min(rows, tiles_per_block * loops.tile_rows);
  grid.row_blocks = DivideUp(rows, grid.rows_per_block);
  const int64_t groups = std::min(panels, DivideUp(num_threads, grid.row_blocks));
  grid.panels_per_group = DivideUp(panels, groups);
  grid.panel_groups = DivideUp(panels, grid.panels_per_group);
  return grid;
}

void ForEachPiece(ThreadPool& threads, int64_t pieces, absl::FunctionRef<void(int worker, int64_t piece)> body) {
  if (pieces == 0) return;
  const int64_t workers = std::min<int64_t>(threads.num_threads(), pieces);
  threads.ParallelFor(workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      // This form of the expression cannot overflow.
      const int64_t each = pieces / workers, extra = pieces % workers;
      const int64_t first = worker * each + std::min(worker, extra);
      const int64_t last = first + each + (worker < extra);
      for (int64_t piece = first; piece < last && !RunIsCancelled(); ++piece) body(static_cast<int>(worker), piece);
    }
  });
}

void ParallelMultiply(const InnerLoops& loops, ThreadPool& threads, int64_t rows, const PackedShape& shape,
                      const float* a, int64_t a_stride, const float* packed, float* c, int64_t c_stride) {
  const WorkGrid grid = DivideWork(loops, rows, shape, threads.num_threads());
  ForEachPiece(threads, grid.num_pieces(), [&](int, int64_t piece) {
    const int64_t row = piece / grid.panel_groups * grid.rows_per_block;
    const int64_t panel = piece % grid.panel_groups * grid.panels_per_group;
    Multiply(loops, std::min(grid.rows_per_block, rows - row), shape, a + row * a_stride, a_stride, packed,
             c + row * c_stride, c_stride, panel, std::min(panel + grid.panels_per_group, shape.NumPanels(loops)));
  });
}

}  // namespace permafrost

// Packs matrices into panels, and multiplies with them.
#include "runtime_check/delegates/onednn/right_matrix.h"

#include <algorithm>

#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {
namespace {

// With fewer rows, reading a matrix once for each row is as fast as packing it.
constexpr int64_t kFewRows = 3;
// Floats of left operands that stay in the L2 cache while all panels pass, and rows of a panel in the L1 cache.
constexpr int64_t kLeftFloats = 65536;
constexpr int64_t kSlabDepth = 256;

// Returns the width of a packed panel with that many columns (inner_loops.h).
int64_t PanelWidth(const InnerLoops& loops, int64_t columns) {
  return columns <= loops.vector_floats ? loops.vector_floats : loops.panel_width;
}

}  // namespace

RightMatrix::RightMatrix(int64_t rows, int64_t depth, int64_t columns, int64_t depth_step, int64_t column_step)
    : depth_(depth),
      columns_(columns),
      depth_step_(depth_step),
      column_step_(column_step),
      is_packed_(rows > kFewRows || (depth_step != 1 && column_step != 1)) {
  const InnerLoops& loops = BestInnerLoops();
  for (int64_t first = 0; first < columns_; first += loops.panel_width) {
    padded_columns_ += PanelWidth(loops, std::min<int64_t>(loops.panel_width, columns_ - first));
  }
  if (is_packed_) packed_floats_ = depth_ * padded_columns_;
}

void RightMatrix::Load(const float* data, float* packed) {
  data_ = data;
  packed_ = packed;
  if (is_packed_) Pack(packed);
}

void RightMatrix::Pack(float* to) const {
  const InnerLoops& loops = BestInnerLoops();
  for (int64_t first = 0; first < columns_; first += loops.panel_width) {
    const int64_t columns = std::min<int64_t>(loops.panel_width, columns_ - first);
    const int64_t width = PanelWidth(loops, columns);
    const float* from = data_ + first * column_step_;
    if (column_step_ == 1) {
      for (int64_t k = 0; k < depth_; ++k) {
        std::copy_n(from + k * depth_step_, columns, to + k * width);
        std::fill(to + k * width + columns, to + (k + 1) * width, 0.0f);
      }
    } else {
      // Rows of 16 elements are read from each column at a time, so that the panel is written within a few cache lines.
      constexpr int64_t kDepthBlock = 16;
      for (int64_t begin = 0; begin < depth_; begin += kDepthBlock) {
        const int64_t end = std::min(begin + kDepthBlock, depth_);
        for (int64_t c = 0; c < columns; ++c) {
          const float* column = from + c * column_step_;
          for (int64_t k = begin; k < end; ++k) to[k * width + c] = column[k * depth_step_];
        }
        for (int64_t k = begin; k < end; ++k) std::fill(to + k * width + columns, to + (k + 1) * width, 0.0f);
      }
    }
    to += depth_ * width;
  }
}

void RightMatrix::Multiply(int64_t rows, const float* left, int64_t left_step, float* result,
                           int64_t result_step) const {
  const InnerLoops& loops = BestInnerLoops();
  if (!is_packed_) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* a = left + r * left_step;
      float* c = result + r * result_step;
      if (column_step_ == 1) {
        std::fill(c, c + columns_, 0.0f);
        for (int64_t k = 0; k < depth_; ++k) loops.add_scaled(columns_, a[k], data_ + k * depth_step_, c);
      } else {
        MovingProducts(columns_, column_step_, 1, depth_, {data_, 0}, {a, 0}, c);
      }
    }
    return;
  }
  MultiplyPacked(rows, left, left_step, result, result_step, /*is_padded=*/false);
}

void RightMatrix::MultiplyPadded(int64_t rows, const float* left, int64_t left_step, float* result) const {
  if (!is_packed_) return Multiply(rows, left, left_step, result, padded_columns_);
  MultiplyPacked(rows, left, left_step, result, padded_columns_, /*is_padded=*/true);
}

void RightMatrix::MultiplyPacked(int64_t rows, const float* left, int64_t left_step, float* result, int64_t result_step,
                                 bool is_padded) const {
  const InnerLoops& loops = BestInnerLoops();
  const int64_t block = std::max<int64_t>(loops.tile_rows, kLeftFloats / depth_);
  for (int64_t begin = 0; begin < rows; begin += block) {
    const int64_t count = std::min(block, rows - begin);
    const float* panel = packed_;
    for (int64_t first = 0; first < columns_; first += loops.panel_width) {
      const int64_t columns = std::min<int64_t>(loops.panel_width, columns_ - first);
      const int64_t width = PanelWidth(loops, columns);
      for (int64_t k = 0; k < depth_; k += kSlabDepth) {
        loops.multiply_panel(count, is_padded ? width : columns, std::min(kSlabDepth, depth_ - k),
                             left + begin * left_step + k, left_step, panel + k * width,
                             result + begin * result_step + first, result_step, k > 0);
      }
      panel += depth_ * width;
    }
  }
}

}  // namespace onednn
}  // namespace permafrost

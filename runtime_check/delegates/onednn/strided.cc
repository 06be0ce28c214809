// Computes strides, composes views and joins loops.
#include "runtime_check/delegates/onednn/strided.h"

#include <algorithm>
#include <cstdlib>

namespace permafrost {
namespace onednn {

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape.dim(d);
  }
  return strides;
}

std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to) {
  const std::vector<int64_t> own = RowMajorStrides(from);
  std::vector<int64_t> strides(static_cast<size_t>(to.rank()), 0);
  const int shift = to.rank() - from.rank();
  for (int d = 0; d < from.rank(); ++d) {
    if (from.dim(d) != 1) strides[d + shift] = own[d];
  }
  return strides;
}

std::optional<StridedView> ComposeViews(const StridedView& outer, const Shape& shape, const StridedView& inner,
                                        const Shape& middle) {
  // A position in the middle tensor is unique as one index for each of its dimensions. Each stride of the outer view
  // moves along one dimension, and no sum of moves may leave it.
  const std::vector<int64_t> own = RowMajorStrides(middle);
  std::vector<int64_t> least(own.size(), 0), most(own.size(), 0);
  StridedView view;
  view.offset = inner.offset;
  int64_t rest = outer.offset;
  for (size_t d = 0; d < own.size(); ++d) {
    const int64_t index = rest / own[d];
    rest -= index * own[d];
    least[d] = most[d] = index;
    view.offset += index * inner.strides[d];
  }
  for (size_t i = 0; i < outer.strides.size(); ++i) {
    const int64_t stride = outer.strides[i], size = shape.dim(static_cast<int>(i));
    int64_t step = 0;
    if (size > 1 && stride != 0) {
      size_t d = 0;
      while (d < own.size() && (middle.dim(static_cast<int>(d)) == 1 || std::abs(stride) % own[d] != 0)) ++d;
      if (d == own.size()) return std::nullopt;
      const int64_t count = stride / own[d];
      (count > 0 ? most : least)[d] += count * (size - 1);
      step = count * inner.strides[d];
    }
    view.strides.push_back(step);
  }
  for (size_t d = 0; d < own.size(); ++d) {
    if (least[d] < 0 || most[d] >= middle.dim(static_cast<int>(d))) return std::nullopt;
  }
  return view;
}

StridedLoops::StridedLoops(const Shape& shape, absl::Span<const std::vector<int64_t>> strides) {
  std::vector<Dimension> dimensions;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) == 1) continue;
    Dimension next = {shape.dim(d), {}};
    for (size_t k = 0; k < strides.size(); ++k) next.steps[k] = strides[k][d];
    if (!dimensions.empty()) {
      Dimension& last = dimensions.back();
      bool is_joined = true;
      for (size_t k = 0; k < strides.size(); ++k) is_joined &= last.steps[k] == next.size * next.steps[k];
      if (is_joined) {
        last.size *= next.size;
        last.steps = next.steps;
        continue;
      }
    }
    dimensions.push_back(next);
  }
  if (!dimensions.empty()) {
    length_ = dimensions.back().size;
    steps_ = dimensions.back().steps;
    dimensions.pop_back();
  }
  for (const Dimension& dimension : dimensions) rows_ *= dimension.size;
  outer_ = std::move(dimensions);
}

}  // namespace onednn
}  // namespace permafrost

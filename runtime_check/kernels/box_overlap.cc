// Compares a box with many others.
#include "runtime_check/kernels/box_overlap.h"

#include "graph/base/multiversion.h"

namespace permafrost {
namespace {

// Boxes between two questions whether one overlaps. The boxes that were selected last are the most likely to overlap.
constexpr int64_t kBlock = 32;

PF_INLINE inline float Least(float a, float b) { return b < a ? b : a; }
PF_INLINE inline float Greatest(float a, float b) { return a < b ? b : a; }

}  // namespace

void SelectedBoxes::Add(const float* box) {
  const float top = std::min(box[0], box[2]), left = std::min(box[1], box[3]);
  const float bottom = std::max(box[0], box[2]), right = std::max(box[1], box[3]);
  const float values[] = {top, left, bottom, right, (bottom - top) * (right - left)};
  for (int64_t i = 0; i < kFloatsOfBox; ++i) columns_[i * most_ + size_] = values[i];
  ++size_;
}

bool SelectedBoxes::AnyOverlapsAbove(const float* box, int64_t begin, float threshold) const {
  const float a_top = std::min(box[0], box[2]), a_left = std::min(box[1], box[3]);
  const float a_bottom = std::max(box[0], box[2]), a_right = std::max(box[1], box[3]);
  const float a_area = (a_bottom - a_top) * (a_right - a_left);
  if (a_area <= 0) return 0 > threshold && begin < size_;
  const float *tops = columns_, *lefts = tops + most_, *bottoms = lefts + most_, *rights = bottoms + most_,
              *areas = rights + most_;
  bool overlaps = false;
  Multiversion([&]() PF_INLINE {
    for (int64_t end = size_; end > begin && !overlaps; end = std::max(begin, end - kBlock)) {
      int32_t count = 0;
      for (int64_t i = std::max(begin, end - kBlock); i < end; ++i) {
        const float height = Greatest(Least(a_bottom, bottoms[i]) - Greatest(a_top, tops[i]), 0.0f);
        const float width = Greatest(Least(a_right, rights[i]) - Greatest(a_left, lefts[i]), 0.0f);
        const float shared = height * width;
        const float ratio = shared / (a_area + areas[i] - shared);
        const float overlap = areas[i] <= 0 ? 0.0f : ratio;
        count += overlap > threshold ? 1 : 0;
      }
      overlaps = count > 0;
    }
  });
  return overlaps;
}

}  // namespace permafrost

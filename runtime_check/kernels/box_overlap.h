// The overlap of boxes of an image.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_BOX_OVERLAP_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_BOX_OVERLAP_H_

#include <algorithm>
#include <cstdint>

namespace permafrost {

// Returns intersection over union, or 0 if a box has no area. The corners of a box may be in any order.
inline float BoxOverlap(const float* a, const float* b) {
  const float a_top = std::min(a[0], a[2]), a_left = std::min(a[1], a[3]);
  const float a_bottom = std::max(a[0], a[2]), a_right = std::max(a[1], a[3]);
  const float b_top = std::min(b[0], b[2]), b_left = std::min(b[1], b[3]);
  const float b_bottom = std::max(b[0], b[2]), b_right = std::max(b[1], b[3]);
  const float a_area = (a_bottom - a_top) * (a_right - a_left), b_area = (b_bottom - b_top) * (b_right - b_left);
  if (a_area <= 0 || b_area <= 0) return 0;
  const float height = std::max(std::min(a_bottom, b_bottom) - std::max(a_top, b_top), 0.0f);
  const float width = std::max(std::min(a_right, b_right) - std::max(a_left, b_left), 0.0f);
  const float shared = height * width;
  return shared / (a_area + b_area - shared);
}

// Boxes that a suppression has selected, in columns, so that a box is compared with many of them at once.
class SelectedBoxes {
 public:
  static constexpr int64_t kFloatsOfBox = 5;

  // `memory` has kFloatsOfBox floats for each of `most` boxes, and outlives this object.
  SelectedBoxes(float* memory, int64_t most) : columns_(memory), most_(most) {}

  int64_t size() const { return size_; }
  void Clear() { size_ = 0; }
  // REQUIRES: size() < most.
  void Add(const float* box);
  // Returns whether BoxOverlap(box, other) exceeds the threshold for one of the boxes [begin, size()).
  bool AnyOverlapsAbove(const float* box, int64_t begin, float threshold) const;

 private:
  float* columns_;  // Top, left, bottom, right and area, `most_` of each.
  int64_t most_;
  int64_t size_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_BOX_OVERLAP_H_

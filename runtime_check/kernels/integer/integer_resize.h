// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of NHWC codes; input and output have the same scale.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_RESIZE_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"

namespace permafrost {

struct ResizeSizes {
  int64_t batch = 0, input_height = 0, input_width = 0, output_height = 0, output_width = 0, channels = 0;
  bool align_corners = false, half_pixel_centers = false;
};

// int8 and int16 interpolate with positions of 10 fraction bits; uint8 interpolates in float.
class IntegerResizeBilinear {
 public:
  static absl::StatusOr<IntegerResizeBilinear> Make(CodeType type, const ResizeSizes& sizes);
  int64_t rows() const { return sizes_.batch * sizes_.output_height; }
  // Computes output lines [first, last).
  void Compute(const void* input, int64_t first, int64_t last, void* output) const;

 private:
  struct Position {
    int64_t low, high;
    int64_t fraction;      // 10 bits, but for positions outside of the image.
    float float_fraction;  // For uint8.
  };
  static void Place(bool is_float, int64_t input, int64_t output, const ResizeSizes& sizes,
                    std::vector<Position>* positions);

  template <typename T>
  void ComputeLines(const T* input, int64_t first, int64_t last, T* output) const;

  CodeType type_ = CodeType::kInt8;
  ResizeSizes sizes_;
  std::vector<Position> y_, x_;
};

// Copies the nearest code: floor, or round half away from zero with align_corners.
class IntegerResizeNearest {
 public:
  static absl::StatusOr<IntegerResizeNearest> Make(CodeType type, const ResizeSizes& sizes);
  int64_t rows() const { return sizes_.batch * sizes_.output_height; }
  void Compute(const void* input, int64_t first, int64_t last, void* output) const;

 private:
  int64_t element_size_ = 1;
  ResizeSizes sizes_;
  std::vector<int64_t> y_, x_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_RESIZE_H_

// Convolutions of float images, shared by Conv2D and the ops that fuse other ops into it.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_CONVOLUTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/packed_input.h"
#include "runtime_check/kernels/post_ops.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {

// The parameters of a convolution. PrepareConvolutionOf creates it; only Convolve reads its fields.
struct Convolution {
  const InnerLoops* loops = nullptr;
  ImageLayout layout;
  Window window;
  int filter_input = 1;
  int64_t batch = 0, input_channels = 0, output_channels = 0;
  int64_t groups = 1, group_inputs = 0, group_outputs = 0;  // Channels of one group.

  PackedShape matrix;       // The weights of one group.
  int64_t matrix_size = 0;  // In floats.
  PackedInput weights;      // All groups, packed; unset when the filter is not constant.
  WorkGrid grid;
  bool in_place = false;     // A row of the product is a pixel of the input, read in place.
  bool reads_lines = false;  // A row is a run of such pixels for each line of taps, except at the borders.
  int64_t row_stride = 0;    // Distance of gathered rows, in floats.
  PostOps post_ops;

  // Offsets of parts of the scratch memory.
  int64_t weights_part = 0, rows_part = 0, input_part = 0, output_part = 0;

  // Without channels nothing is computed, and the number of pixels is not limited.
  int64_t num_rows() const { return output_channels == 0 ? 0 : batch * window.y.output * window.x.output; }
};

// Prepares a convolution of any supported type. Checks attributes and shapes for an image of shape `image`, of rank 4,
// and the filter in input `filter_input`; sets the shape of output 0, packs a constant filter, and adds the scratch
// memory that Convolve needs. The args of a _Fused op start after the filter.
absl::StatusOr<Convolution> PrepareConvolutionOf(PrepareContext* context, const ImageLayout& layout, const Shape& image,
                                                 int filter_input, ScratchParts* parts);

// Computes output 0 from an image of the prepared shape.
void Convolve(ComputeContext* context, const Convolution& convolution, const float* image);
// Computes output 0 from an image of doubles, element by element.
void Convolve(ComputeContext* context, const Convolution& convolution, const double* image);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_CONVOLUTION_H_

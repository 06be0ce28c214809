// The transforms of Winograd convolutions, compiled once for each instruction set.
//
// F(m, r) computes m neighbouring results of a filter with r taps from m + r - 1 pixels with as many multiplications,
// one for each evaluation point. A two-dimensional form applies one form to each axis.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_LOOPS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {

// F(outputs, taps) along one axis. F(1, 1) leaves the axis as it is.
struct WinogradAxis {
  int outputs = 1, taps = 1;

  int points() const { return outputs + taps - 1; }
  friend bool operator==(const WinogradAxis& a, const WinogradAxis& b) {
    return a.outputs == b.outputs && a.taps == b.taps;
  }
};

struct WinogradForm {
  WinogradAxis y, x;

  int points() const { return y.points() * x.points(); }
  friend bool operator==(const WinogradForm& a, const WinogradForm& b) { return a.y == b.y && a.x == b.x; }
};

// One tile of pixels, and where its values at the points are written. Steps are in floats.
struct WinogradSource {
  const float* pixels;
  int64_t row_step, pixel_step;
  int64_t channels;
  float* values;  // Has room for the channels in whole vectors.
  int64_t point_step;
};

// The filters from one input channel to some output channels. Steps are in floats.
struct WinogradFilter {
  const float* taps;
  int64_t tap_step;
  int64_t channels;
  const float* scale;  // One factor for each output channel, or null.
  float* values;       // Has room for the channels in whole vectors; zeros are written past the channels.
  int64_t point_step;
};

// One tile of results. They are the sums, plus bias, plus addends, multiplied by the slope if negative, clipped.
struct WinogradTarget {
  const float* sums;  // The channels in whole vectors.
  int64_t point_step;
  int64_t channels;
  const float* bias;     // The channels in whole vectors.
  const float* slopes;   // As the bias, or null.
  const float* addends;  // In the layout of the results, or null.
  float least, most;
  float* results;
  int64_t row_step, pixel_step;
  int64_t rows, columns;  // Size of the tile's part inside the image, at least 1 each.
};

struct WinogradLoops {
  WinogradForm form;
  void (*transform_filter)(const WinogradFilter& filter);
  void (*transform_source)(const WinogradSource& source);
  // Returns false if a sum is NaN or infinite.
  bool (*transform_target)(const WinogradTarget& target);
};

// Returns the transforms of all forms for the instruction set of those inner loops.
absl::Span<const WinogradLoops> WinogradLoopsFor(const InnerLoops& set);

// Returns the transforms of the form for the instruction set of BestInnerLoops, or null if there are none.
const WinogradLoops* FindWinogradLoops(const WinogradForm& form);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_LOOPS_H_

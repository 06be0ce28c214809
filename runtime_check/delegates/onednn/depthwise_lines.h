// Depthwise convolutions line by line in AVX-512 vectors, for float, bfloat16 and 8-bit sources.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_LINES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_LINES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace onednn {

constexpr int64_t kMostDepthwiseTaps = 5;
// Maximum number of result lines that are computed at once, if neighbouring result lines read neighbouring input lines.
constexpr int64_t kMostDepthwiseLines = 2;

// Returns true if the processor, under oneDNN's setting, has the instructions for sources of that type.
bool HasDepthwiseLines(Element source);

// Returns true if lines along that axis can be computed: 3 or 5 taps, with a stride of 1, or of 2 without dilation. The
// other axis must have the same number of taps.
bool HasDepthwiseLines(const WindowAxis& axis);

// The operations applied to a sum of products, per channel: multiply by factor, add addend, multiply a negative result
// by slope, clip.
struct DepthwiseResults {
  std::vector<float> factors;  // Only for 8-bit sources.
  std::vector<float> addends;
  std::vector<float> slopes;  // Empty means 1.
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

class DepthwiseLines {
 public:
  // Weights are [taps, taps, channels]. A float or bfloat16 source requires finite float weights and a target of the
  // same type or float. An 8-bit source requires 8-bit weights and a target of float or 8 bits; results are clipped to
  // the range of an 8-bit target. REQUIRES: HasDepthwiseLines for source and axis.
  DepthwiseLines(const WindowAxis& axis, int64_t channels, Element source, Element target,
                 const std::vector<float>& weights, const DepthwiseResults& results);
  DepthwiseLines(const WindowAxis& axis, int64_t channels, Element source, Element target,
                 const std::vector<int8_t>& weights, const DepthwiseResults& results);

  // Computes `count` lines. `lines` holds the input line that each vertical tap reads, or null for one outside the
  // image. With a count of 2 it has one more entry: the second line of the target follows the first and starts one
  // input line further down. NaN propagates.
  void Run(const char* const* lines, int64_t count, char* target) const;

  int64_t bytes() const;

  // Parameters of the function that computes a block of channels.
  struct Constants {
    const char* weights;
    const float *factors, *addends, *slopes;  // By channel of the block, in the order of the block; slopes may be null.
    const int32_t* start;                     // Initial values of 8-bit sums.
    float least, most;
    bool is_source_signed, is_target_signed;
  };
  // A run of positions that are `step` bytes apart in the source and `target_step` bytes apart in the target.
  struct Strip {
    const char* lines[kMostDepthwiseTaps + kMostDepthwiseLines - 1];  // From the first channel of the block.
    uint32_t inside;                                                  // Bit t is set if line t lies inside the image.
    uint16_t mask;                                                    // Bit per channel, in a block of 16.
    int64_t offset;  // Offset of the first column that the first position reads; may be negative.
    int64_t step, target_step, target_line;
    int64_t first_inside, last_inside;  // Columns inside the image, counted from that first column.
    int64_t positions;
    char* target;
  };

 private:
  struct Block {
    int64_t first, channels;
    uint16_t mask;
    void (*run)(const Strip&, const Constants&);
    void (*run_two)(const Strip&, const Constants&);  // Computes two lines; null if lines are computed one by one.
    size_t weights, numbers;                          // Offsets of the block's own weights and numbers.
  };

  void Prepare(const DepthwiseResults& results);

  const WindowAxis axis_;
  const int64_t channels_;
  const Element source_, target_;
  float least_, most_;
  std::vector<Block> blocks_;
  std::vector<char> weights_;
  std::vector<float> factors_, addends_, slopes_;
  std::vector<int32_t> start_;
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_LINES_H_

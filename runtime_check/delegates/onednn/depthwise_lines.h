// Depthwise convolutions line by line, in vectors of AVX-512: of floats, bfloat16 and eight bits.
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
// Lines of the result that are computed at once, where neighbours read lines that are neighbours.
constexpr int64_t kMostDepthwiseLines = 2;

// Whether this processor, and oneDNN's setting, has the instructions for sources of that type.
bool HasDepthwiseLines(Element source);

// Whether lines of that axis can be computed: 3 or 5 taps, a stride of 1, or of 2 without dilation. The other axis must
// have as many taps.
bool HasDepthwiseLines(const WindowAxis& axis);

// What becomes of a sum of products, by channel: sum * factor + addend; that times slope where it is negative; clipped.
struct DepthwiseResults {
  std::vector<float> factors;  // Of eight bits alone.
  std::vector<float> addends;
  std::vector<float> slopes;  // None: 1.
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

class DepthwiseLines {
 public:
  // Weights are [taps, taps, channels]. A source of floats or bfloat16 has a target of the same or of floats, and
  // finite weights of floats. One of eight bits has a target of eight bits, in whose range the results are clipped, or
  // of floats, and weights of eight bits. REQUIRES: HasDepthwiseLines of source and axis.
  DepthwiseLines(const WindowAxis& axis, int64_t channels, Element source, Element target,
                 const std::vector<float>& weights, const DepthwiseResults& results);
  DepthwiseLines(const WindowAxis& axis, int64_t channels, Element source, Element target,
                 const std::vector<int8_t>& weights, const DepthwiseResults& results);

  // `lines`: for each tap down the input line that it reads, null for one outside of the image; with a count of 2 one
  // more, since the next line of the target, which lies behind the first, begins one line further down. NaN stays NaN.
  void Run(const char* const* lines, int64_t count, char* target) const;

  int64_t bytes() const;

  // What a function for a block of channels is told.
  struct Constants {
    const char* weights;
    const float *factors, *addends, *slopes;  // By channel of the block, in its order; slopes may be null.
    const int32_t* start;                     // Of sums of eight bits.
    float least, most;
    bool is_source_signed, is_target_signed;
  };
  // A run of positions that are `step` bytes of the source and `target_step` of the target apart.
  struct Strip {
    const char* lines[kMostDepthwiseTaps + kMostDepthwiseLines - 1];  // From the first channel of the block on.
    uint32_t inside;                                                  // Bit t: line t lies in the image.
    uint16_t mask;                                                    // Of channels, in a block of 16.
    int64_t offset;  // Of the first column that the first position reads; may be negative.
    int64_t step, target_step, target_line;
    int64_t first_inside, last_inside;  // Columns in the image, from that first one on.
    int64_t positions;
    char* target;
  };

 private:
  struct Block {
    int64_t first, channels;
    uint16_t mask;
    void (*run)(const Strip&, const Constants&);
    void (*run_two)(const Strip&, const Constants&);  // Two lines; null: one after the other.
    size_t weights, numbers;                          // Where its own begin.
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

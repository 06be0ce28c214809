// Histogram of the values of a constant.
#ifndef PERMAFROST_TOOLS_REPORT_WEIGHT_HISTOGRAM_H_
#define PERMAFROST_TOOLS_REPORT_WEIGHT_HISTOGRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor.h"

namespace permafrost {

inline constexpr int kHistogramBins = 48;

// Statistics and bins of the values of a constant.
struct WeightHistogram {
  std::vector<int64_t> counts;  // kHistogramBins bins of equal width from `low` to `high`; finite values only.
  double low = 0, high = 0, mean = 0, deviation = 0;
  int64_t num_zeros = 0, num_nan = 0, num_infinite = 0, num_elements = 0;
};

// Returns the histogram; nothing for types that are not real numbers, and for tensors without elements. Codes of
// quantised types are not dequantised. Two passes over the elements.
std::optional<WeightHistogram> MakeWeightHistogram(const Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_WEIGHT_HISTOGRAM_H_

// How the values of a constant are spread.
#ifndef PERMAFROST_TOOLS_REPORT_WEIGHT_HISTOGRAM_H_
#define PERMAFROST_TOOLS_REPORT_WEIGHT_HISTOGRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor.h"

namespace permafrost {

inline constexpr int kHistogramBins = 48;

struct WeightHistogram {
  std::vector<int64_t> counts;  // kHistogramBins of equal width from `low` to `high`; finite values only.
  double low = 0, high = 0, mean = 0, deviation = 0;
  int64_t num_zeros = 0, num_nan = 0, num_infinite = 0, num_elements = 0;
};

// Nothing for types that are no real numbers, and for tensors without elements. Codes of quantised types count as they
// are. Two passes over the elements.
std::optional<WeightHistogram> MakeWeightHistogram(const Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_WEIGHT_HISTOGRAM_H_

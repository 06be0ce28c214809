// Counts values by bin.
#include "tools/report/weight_histogram.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace permafrost {
namespace {

template <typename T>
double ToDouble(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(ToFloat(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(value.value);
  }
}

template <typename T>
WeightHistogram Count(const UnalignedSpan<T>& elements) {
  WeightHistogram histogram;
  histogram.counts.assign(kHistogramBins, 0);
  histogram.num_elements = static_cast<int64_t>(elements.size());
  int64_t finite = 0;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const double value = ToDouble(elements[i]);
    if (std::isnan(value)) {
      ++histogram.num_nan;
      continue;
    }
    if (std::isinf(value)) {
      ++histogram.num_infinite;
      continue;
    }
    histogram.low = finite == 0 ? value : std::min(histogram.low, value);
    histogram.high = finite == 0 ? value : std::max(histogram.high, value);
    if (value == 0) ++histogram.num_zeros;
    // Welford's algorithm, since squares of large numbers cancel.
    ++finite;
    const double step = value - sum;
    sum += step / static_cast<double>(finite);
    squares += step * (value - sum);
  }
  if (finite == 0) return histogram;
  histogram.mean = sum;
  histogram.deviation = std::sqrt(squares / static_cast<double>(finite));
  // Halved, so that the range of the largest doubles does not become infinite.
  const double range = histogram.high / 2 - histogram.low / 2;
  for (size_t i = 0; i < elements.size(); ++i) {
    const double value = ToDouble(elements[i]);
    if (!std::isfinite(value)) continue;
    const double share = range > 0 ? (value / 2 - histogram.low / 2) / range : 0;
    const auto bin = std::min<size_t>(kHistogramBins - 1, static_cast<size_t>(share * kHistogramBins));
    ++histogram.counts[bin];
  }
  return histogram;
}

}  // namespace

std::optional<WeightHistogram> MakeWeightHistogram(const Tensor& tensor) {
  std::optional<WeightHistogram> histogram;
  if (tensor.dtype() == DType::kString || tensor.num_elements() == 0) return histogram;
  DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, QInt8,
             QUint8, QInt16, QUint16, QInt32>(
      tensor.dtype(), [&](auto tag) { histogram = Count(tensor.template elements<typename decltype(tag)::type>()); });
  return histogram;
}

}  // namespace permafrost

// Which values of a tensor are worth telling apart when there are only eight bits for them.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_VALUE_RANGE_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_VALUE_RANGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

enum class RangeMethod {
  kMinMax,          // All of them.
  kPercentile999,   // 99.9 % of them.
  kPercentile9999,  // 99.99 %.
  kKl,              // So that the distribution changes least: the Kullback-Leibler divergence.
  kMse,             // So that the squares of the errors are least.
};

// "minmax", "percentile99.9", "percentile99.99", "kl", "mse".
std::vector<std::string> RangeMethodNames();
// InvalidArgument for another name, with the known ones.
absl::StatusOr<RangeMethod> RangeMethodOf(absl::string_view name);

// How often magnitudes occur, up to the largest, which must be known before.
class Histogram {
 public:
  static constexpr int kBins = 2048;

  // `most` is at least 0 and finite.
  explicit Histogram(float most) : most_(most) {}
  // REQUIRES: finite, and no magnitude above the largest.
  void Add(absl::Span<const float> values);
  // The magnitude up to which values are kept apart, when there are `steps` steps from 0 to there; 0 if all are 0.
  float Bound(RangeMethod method, int steps) const;
  // The mean square of the errors with such a bound.
  double SquaredError(float bound, int steps) const;

 private:
  float Percentile(double part) const;
  float LeastDivergence(int steps) const;
  float LeastSquaredError(int steps) const;
  double BinWidth() const { return static_cast<double>(most_) / kBins; }

  float most_;
  int64_t zeros_ = 0, count_ = 0;           // count_ without zeros.
  std::array<int64_t, kBins> counts_ = {};  // Without zeros, which have no error.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_VALUE_RANGE_H_

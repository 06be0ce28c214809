// Chooses the range of values that 8-bit quantisation represents.
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
  kMinMax,          // All values.
  kPercentile999,   // 99.9 % of the values.
  kPercentile9999,  // 99.99 % of the values.
  kKl,              // Minimises the change of the distribution (Kullback-Leibler divergence).
  kMse,             // Minimises the mean squared error.
};

// Returns "minmax", "percentile99.9", "percentile99.99", "kl" and "mse".
std::vector<std::string> RangeMethodNames();
// Returns the method with that name. InvalidArgument for another name, with the known ones.
absl::StatusOr<RangeMethod> RangeMethodOf(absl::string_view name);

// Returns the Kullback-Leibler divergence, times the number of values, of a histogram whose values outside of the bins
// from `begin` to `end` are clamped, from the same in `steps` steps, each of which is spread evenly over its bins.
// REQUIRES: 0 <= begin < end <= counts.size(), and steps > 0.
double DivergenceInSteps(absl::Span<const int64_t> counts, int begin, int end, int steps);

// A histogram of magnitudes up to a maximum, which must be known in advance.
class Histogram {
 public:
  static constexpr int kBins = 2048;

  // Creates an empty histogram. `most` is the largest magnitude: at least 0 and finite.
  explicit Histogram(float most) : most_(most) {}
  // Adds values. REQUIRES: they are finite, and no magnitude exceeds the maximum.
  void Add(absl::Span<const float> values);
  // Returns the magnitude up to which values are distinguished, with `steps` steps from 0 to it; 0 if all values are 0.
  float Bound(RangeMethod method, int steps) const;
  // Returns the mean squared error for such a bound.
  double SquaredError(float bound, int steps) const;

 private:
  float Percentile(double part) const;
  float LeastDivergence(int steps) const;
  float LeastSquaredError(int steps) const;
  double BinWidth() const { return static_cast<double>(most_) / kBins; }

  float most_;
  int64_t zeros_ = 0, count_ = 0;           // count_ excludes zeros.
  std::array<int64_t, kBins> counts_ = {};  // Excludes zeros, which have no error.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_VALUE_RANGE_H_

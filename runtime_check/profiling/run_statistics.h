// Statistics of measurements: the running ones of the original's tables, and robust ones, which a machine that does
// other things too does not spoil.
#ifndef PERMAFROST_RUNTIME_CHECK_PROFILING_RUN_STATISTICS_H_
#define PERMAFROST_RUNTIME_CHECK_PROFILING_RUN_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace permafrost {

// Accumulates integers (microseconds, bytes) without keeping them.
class RunningStat {
 public:
  void Add(int64_t value);

  int64_t count() const { return count_; }
  int64_t first() const { return first_; }
  int64_t newest() const { return newest_; }
  int64_t min() const { return min_; }
  int64_t max() const { return max_; }
  double sum() const { return sum_; }
  double squared_sum() const { return squared_sum_; }
  bool all_same() const { return count_ == 0 || min_ == max_; }
  // Of the population; 0 without values.
  double mean() const;
  double standard_deviation() const;

  // "count=0", "count=3 curr=7(all same)", "count=4 first=1 curr=0 min=-1 max=100 avg=25 std=43": the original's words.
  std::string ToString() const;

 private:
  int64_t count_ = 0;
  int64_t first_ = 0, newest_ = 0, min_ = 0, max_ = 0;
  double sum_ = 0, squared_sum_ = 0;
};

struct Interval {
  double low = 0;
  double high = 0;
};

// Values that are kept. All statistics are 0 without values. Immutable.
class Sample {
 public:
  Sample() = default;
  // NaN is left out.
  explicit Sample(std::vector<double> values);

  size_t size() const { return sorted_.size(); }
  bool empty() const { return sorted_.empty(); }
  const std::vector<double>& sorted() const { return sorted_; }

  double min() const { return empty() ? 0 : sorted_.front(); }
  double max() const { return empty() ? 0 : sorted_.back(); }
  double mean() const { return mean_; }
  // Of the sample (divided by size - 1); 0 below 2 values.
  double variance() const { return variance_; }
  double standard_deviation() const;
  // Interpolated between the two nearest values; `p` from 0 to 1.
  double Percentile(double p) const;
  double median() const { return Percentile(0.5); }

  // Values further from the quartiles than 1.5 times what lies between them (Tukey's fences) are outliers.
  size_t num_outliers() const { return num_outliers_; }
  double mean_without_outliers() const { return robust_mean_; }
  // (75th - 25th percentile) / median.
  double relative_spread() const;

  // Holds the median of what was sampled from with a probability of at least `confidence`, whatever its distribution:
  // two of the values, chosen by the binomial distribution. Below 6 values, for 95 %, no two values suffice: the least
  // and the largest are returned.
  Interval MedianInterval(double confidence = 0.95) const;

 private:
  std::vector<double> sorted_;
  double mean_ = 0, variance_ = 0, robust_mean_ = 0;
  size_t num_outliers_ = 0;
};

// How many times larger a[i] is than b[i], measured in pairs one right after the other, so that what slows the machine
// for a while slows both. REQUIRES: equal sizes. Pairs with b[i] <= 0 are left out.
Sample PairedRatios(absl::Span<const double> a, absl::Span<const double> b);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_RUN_STATISTICS_H_

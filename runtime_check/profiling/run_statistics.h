// Statistics of measurements: running statistics as in TensorFlow's tables, and robust statistics, which outliers from
// other load on the machine do not distort.
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
  // Statistics of the population; 0 without values.
  double mean() const;
  double standard_deviation() const;

  // Returns "count=0", "count=3 curr=7(all same)" or "count=4 first=1 curr=0 min=-1 max=100 avg=25 std=43", as
  // TensorFlow does.
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

// Statistics of stored values. All statistics are 0 without values. Immutable.
class Sample {
 public:
  Sample() = default;
  // Copies the values; NaN is discarded.
  explicit Sample(std::vector<double> values);

  size_t size() const { return sorted_.size(); }
  bool empty() const { return sorted_.empty(); }
  const std::vector<double>& sorted() const { return sorted_; }

  double min() const { return empty() ? 0 : sorted_.front(); }
  double max() const { return empty() ? 0 : sorted_.back(); }
  double mean() const { return mean_; }
  // Return sample statistics (divided by size - 1); 0 below 2 values.
  double variance() const { return variance_; }
  double standard_deviation() const;
  // Returns a percentile, interpolated between the two nearest values; `p` is from 0 to 1.
  double Percentile(double p) const;
  double median() const { return Percentile(0.5); }

  // Returns the number of outliers: values further from the quartiles than 1.5 times the interquartile range (Tukey's
  // fences).
  size_t num_outliers() const { return num_outliers_; }
  double mean_without_outliers() const { return robust_mean_; }
  // Returns (75th - 25th percentile) / median.
  double relative_spread() const;

  // Returns an interval that contains the median of the sampled distribution with a probability of at least
  // `confidence`, for any distribution: two of the values, chosen by the binomial distribution. Below 6 values, for 95
  // %, no two values suffice: the least and the largest are returned.
  Interval MedianInterval(double confidence = 0.95) const;

 private:
  std::vector<double> sorted_;
  double mean_ = 0, variance_ = 0, robust_mean_ = 0;
  size_t num_outliers_ = 0;
};

// Returns the ratios a[i] / b[i]. The two values of a pair are measured one right after the other, so that temporary
// load on the machine affects both. REQUIRES: equal sizes. Pairs with b[i] <= 0 are discarded.
Sample PairedRatios(absl::Span<const double> a, absl::Span<const double> b);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_RUN_STATISTICS_H_

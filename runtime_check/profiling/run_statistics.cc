// Computes sums, order statistics and binomial intervals.
#include "runtime_check/profiling/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// Returns log(P(exactly k of n fair coins show heads)).
double LogBinomialHalf(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0);
}

}  // namespace

void RunningStat::Add(int64_t value) {
  if (count_ == 0) first_ = min_ = max_ = value;
  ++count_;
  newest_ = value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  const auto number = static_cast<double>(value);
  sum_ += number;
  squared_sum_ += number * number;
}

double RunningStat::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double RunningStat::standard_deviation() const {
  if (all_same()) return 0;
  return std::sqrt(std::max(0.0, squared_sum_ / static_cast<double>(count_) - mean() * mean()));
}

std::string RunningStat::ToString() const {
  if (count_ == 0) return "count=0";
  if (all_same()) return absl::StrCat("count=", count_, " curr=", newest_, count_ > 1 ? "(all same)" : "");
  return absl::StrCat("count=", count_, " first=", first_, " curr=", newest_, " min=", min_, " max=", max_,
                      " avg=", mean(), " std=", static_cast<int64_t>(standard_deviation()));
}

Sample::Sample(std::vector<double> values) : sorted_(std::move(values)) {
  sorted_.erase(std::remove_if(sorted_.begin(), sorted_.end(), [](double value) { return std::isnan(value); }),
                sorted_.end());
  std::sort(sorted_.begin(), sorted_.end());
  if (empty()) return;
  double sum = 0;
  for (const double value : sorted_) sum += value;
  mean_ = sum / static_cast<double>(size());
  double squares = 0;
  for (const double value : sorted_) squares += (value - mean_) * (value - mean_);
  if (size() > 1) variance_ = squares / static_cast<double>(size() - 1);
  const double low = Percentile(0.25), high = Percentile(0.75);
  const double reach = 1.5 * (high - low);
  double kept_sum = 0;
  for (const double value : sorted_) {
    if (value < low - reach || value > high + reach) {
      ++num_outliers_;
    } else {
      kept_sum += value;
    }
  }
  // The values next to the quartiles are never outliers.
  robust_mean_ = kept_sum / static_cast<double>(size() - num_outliers_);
}

double Sample::standard_deviation() const { return std::sqrt(variance_); }

double Sample::Percentile(double p) const {
  if (empty()) return 0;
  const double at = std::clamp(p, 0.0, 1.0) * static_cast<double>(size() - 1);
  const auto below = static_cast<size_t>(at);
  if (below + 1 >= size()) return sorted_.back();
  const double share = at - static_cast<double>(below);
  return sorted_[below] + share * (sorted_[below + 1] - sorted_[below]);
}

double Sample::relative_spread() const { return median() > 0 ? (Percentile(0.75) - Percentile(0.25)) / median() : 0; }

Interval Sample::MedianInterval(double confidence) const {
  if (empty()) return {};
  // The median lies below the k-th smallest value (from 0) when at most k of n values fall below the median.
  const auto n = static_cast<double>(size());
  const double tail = (1 - confidence) / 2;
  double below = 0;
  size_t rank = 0;
  for (size_t k = 0; 2 * k < size(); ++k) {
    below += std::exp(LogBinomialHalf(n, static_cast<double>(k)));
    if (below > tail) break;
    rank = k + 1;
  }
  const size_t low = rank == 0 ? 0 : rank - 1;
  // Rank r discards r values on each side: the interval runs from value r-1 to its mirror.
  return {sorted_[low], sorted_[size() - 1 - low]};
}

Sample PairedRatios(absl::Span<const double> a, absl::Span<const double> b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  }
  return Sample(std::move(ratios));
}

}  // namespace permafrost

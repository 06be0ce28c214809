// Statistical formulas.
#include "tools/validation/significance.h"

#include <algorithm>
#include <cmath>

namespace permafrost {
namespace {

// The 97.5 % quantile of the normal distribution.
constexpr double kNormal95 = 1.959963984540054;

}  // namespace

Interval ShareInterval(int64_t successes, int64_t trials) {
  if (trials <= 0) return {0, 1};
  const double n = static_cast<double>(trials), share = static_cast<double>(successes) / n;
  const double square = kNormal95 * kNormal95;
  const double middle = (share + square / (2 * n)) / (1 + square / n);
  const double half = kNormal95 / (1 + square / n) * std::sqrt(share * (1 - share) / n + square / (4 * n * n));
  return {successes == 0 ? 0 : std::max(0.0, middle - half), successes == trials ? 1 : std::min(1.0, middle + half)};
}

double McNemarProbability(const PairedCounts& counts) {
  const int64_t few = std::min(counts.only_first, counts.only_second);
  const int64_t total = counts.only_first + counts.only_second;
  if (total == 0) return 1;
  const double n = static_cast<double>(total);
  if (total > kMostExactRows) {
    const double difference = std::max(0.0, std::abs(static_cast<double>(counts.only_first - counts.only_second)) - 1);
    // The upper tail of chi-squared with one degree of freedom.
    return std::erfc(std::sqrt(difference * difference / n / 2));
  }
  double tail = 0;
  for (int64_t k = 0; k <= few; ++k) {
    const double i = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Interval ShareDifferenceInterval(const PairedCounts& counts) {
  if (counts.rows <= 0) return {-1, 1};
  const double n = static_cast<double>(counts.rows) + 2;
  const double first = static_cast<double>(counts.only_first) + 0.5;
  const double second = static_cast<double>(counts.only_second) + 0.5;
  const double difference = (second - first) / n;
  const double half = kNormal95 * std::sqrt(first + second - (second - first) * (second - first) / n) / n;
  return {std::max(-1.0, difference - half), std::min(1.0, difference + half)};
}

}  // namespace permafrost

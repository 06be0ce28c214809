// Statistical significance of counted shares.
#ifndef PERMAFROST_TOOLS_VALIDATION_SIGNIFICANCE_H_
#define PERMAFROST_TOOLS_VALIDATION_SIGNIFICANCE_H_

#include <cstdint>

#include "runtime_check/profiling/run_statistics.h"

namespace permafrost {

// Returns the 95 % confidence interval of a share, given `successes` out of `trials`: Wilson's score interval (E. B.
// Wilson, Probable inference, the law of succession, and statistical inference, 1927), which stays inside 0..1 and is
// accurate for few trials, too. 0..1 without trials.
Interval ShareInterval(int64_t successes, int64_t trials);

// Counts of two models on the same rows: `only_first` were correct only in the first model, `only_second` only in the
// second. Rows on which both are correct or both wrong carry no information about the difference.
struct PairedCounts {
  int64_t rows = 0;
  int64_t only_first = 0;
  int64_t only_second = 0;
};

// Up to this many rows with different results the test is exact; beyond it the limit distribution agrees to 3 digits.
inline constexpr int64_t kMostExactRows = 1000;

// Returns the probability of counts that differ at least as much if both models were equally accurate (Q. McNemar, Note
// on the sampling error of the difference between correlated proportions or percentages, Psychometrika 12, 1947).
// Two-sided. Exact by the binomial distribution for at most kMostExactRows different results; beyond that, chi-squared
// with one degree of freedom and A. L. Edwards' correction for continuity (1948), (|b - c| - 1)^2 / (b + c).
double McNemarProbability(const PairedCounts& counts);

// Returns the 95 % confidence interval of the second model's share of correct rows minus the first's: Wald's for paired
// shares with half a row added to each of the four counts (A. Agresti, Y. Min, Simple improved confidence intervals for
// comparing matched proportions, Statistics in Medicine 24, 2005). -1..1 without rows.
Interval ShareDifferenceInterval(const PairedCounts& counts);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_SIGNIFICANCE_H_

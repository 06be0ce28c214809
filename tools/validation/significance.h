// How sure one may be of shares that were counted.
#ifndef PERMAFROST_TOOLS_VALIDATION_SIGNIFICANCE_H_
#define PERMAFROST_TOOLS_VALIDATION_SIGNIFICANCE_H_

#include <cstdint>

#include "runtime_check/profiling/run_statistics.h"

namespace permafrost {

// The interval that holds the true share in 95 of 100 cases, when `successes` of `trials` were counted: Wilson's score
// interval (E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927), which stays
// inside 0..1 and is right for few trials too. 0..1 without trials.
Interval ShareInterval(int64_t successes, int64_t trials);

// Two models answered the same questions; `only_first` were answered rightly by the first alone, `only_second` by the
// second alone. What both know or both do not know says nothing about the difference.
struct PairedCounts {
  int64_t rows = 0;
  int64_t only_first = 0;
  int64_t only_second = 0;
};

// Up to so many rows with different answers the test is exact; above it the distribution is its limit to 3 digits.
inline constexpr int64_t kMostExactRows = 1000;

// The chance of counts that differ at least as much if both were equally good (Q. McNemar, Note on the sampling error
// of the difference between correlated proportions or percentages, Psychometrika 12, 1947). Two-sided: exact by the
// binomial distribution for at most kMostExactRows different answers, above by chi-squared with one degree of freedom
// and A. L. Edwards' correction for continuity (1948), (|b - c| - 1)^2 / (b + c).
double McNemarProbability(const PairedCounts& counts);

// The interval that holds the second's share of right answers less the first's in 95 of 100 cases: Wald's for paired
// shares with half a row added to each of the four counts (A. Agresti, Y. Min, Simple improved confidence intervals for
// comparing matched proportions, Statistics in Medicine 24, 2005). -1..1 without rows.
Interval ShareDifferenceInterval(const PairedCounts& counts);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_SIGNIFICANCE_H_

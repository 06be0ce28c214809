// benchmark_model --baseline: compares a measurement with a recorded one, for builds that fail on a regression.
#ifndef PERMAFROST_TOOLS_MEASURING_BENCHMARK_BASELINE_H_
#define PERMAFROST_TOOLS_MEASURING_BENCHMARK_BASELINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "runtime_check/profiling/run_statistics.h"

namespace permafrost {

// A recorded measurement.
struct Baseline {
  std::string model, delegate, precision;
  int threads = 0;
  double median_seconds = 0;
  Interval median;  // 95 % confidence interval of the median.
};

// Reads the output of `benchmark_model --json`. Errors name the file; InvalidArgument for any other content.
absl::StatusOr<Baseline> ReadBaseline(FileSystem& files, const std::string& path);

// The result of comparing a measurement with a baseline.
struct BaselineVerdict {
  // The current median divided by the recorded one.
  double ratio = 0;
  // The range of the ratio over both confidence intervals.
  Interval interval;
  // True if it is slower by more than allowed and by more than noise explains: the whole interval lies above 1.
  bool is_regression = false;
};

// Compares a sample with the baseline. `allowed` is a share: 0.05 allows the median to grow by 5 %.
BaselineVerdict CompareWithBaseline(const Baseline& baseline, const Sample& now, double allowed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_BENCHMARK_BASELINE_H_

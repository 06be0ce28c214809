// benchmark_model --baseline: compares a measurement with the one in a file, for builds that fail on a regression.
#ifndef PERMAFROST_TOOLS_MEASURING_BENCHMARK_BASELINE_H_
#define PERMAFROST_TOOLS_MEASURING_BENCHMARK_BASELINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "runtime_check/profiling/run_statistics.h"

namespace permafrost {

struct Baseline {
  std::string model, delegate, precision;
  int threads = 0;
  double median_seconds = 0;
  Interval median;  // Where it is with 95 % confidence.
};

// Reads what `benchmark_model --json` printed. Errors name the file; InvalidArgument for anything else.
absl::StatusOr<Baseline> ReadBaseline(FileSystem& files, const std::string& path);

struct BaselineVerdict {
  double ratio = 0;   // The median now over that in the file.
  Interval interval;  // What it is at least and at most, when both medians are as far off as they may be.
  // It is slower by more than was allowed, and by more than noise explains: the whole interval lies above 1.
  bool is_regression = false;
};

// `allowed` is a share: 0.05 lets the median grow by 5 %.
BaselineVerdict CompareWithBaseline(const Baseline& baseline, const Sample& now, double allowed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_BENCHMARK_BASELINE_H_

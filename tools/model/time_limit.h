// The flag --max_time of tools that run or fold models.
#ifndef PERMAFROST_TOOLS_MODEL_TIME_LIMIT_H_
#define PERMAFROST_TOOLS_MODEL_TIME_LIMIT_H_

#include <limits>

#include "absl/status/status.h"
#include "runtime_check/checking/evaluate.h"

namespace permafrost {

// The default, in seconds.
inline constexpr double kDefaultMaxTime = 60;

// Serves callers that can stop a run themselves.
inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

// Checks the value of the flag.
absl::Status CheckMaxTime(double max_time);

// Returns DeadlineExceeded, with the flag, if the evaluations took longer than that.
absl::Status CheckFoldingTime(const KernelEvaluator& evaluator, double max_time);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_TIME_LIMIT_H_

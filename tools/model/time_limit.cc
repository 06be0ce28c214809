// Checks the flag --max_time and what it limits.
#include "tools/model/time_limit.h"

#include "absl/strings/str_cat.h"
#include "tools/command_line/console.h"

namespace permafrost {

absl::Status CheckMaxTime(double max_time) {
  if (max_time > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--max_time: found ", max_time, ", expected more than 0"));
}

absl::Status CheckFoldingTime(const KernelEvaluator& evaluator, double max_time) {
  if (!evaluator.HasRunOutOfTime()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("computing constants takes more than ", FormatNumber(max_time),
                                                  " s; nothing was written; --max_time=SECONDS allows more"));
}

}  // namespace permafrost

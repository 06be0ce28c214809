// Precision `auto`: the fastest precision of a delegate that stays inside a budget of error, found by measurement.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_CHOICE_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_CHOICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/checking/output_error.h"
#include "runtime_check/precision/precision_plan.h"
#include "runtime_check/precision/value_range.h"
#include "runtime_check/session.h"

namespace permafrost {

struct ChoiceOptions {
  AccuracyBudget budget;
  std::vector<std::string> precisions;            // Those to try; empty: all that the delegate has.
  RangeMethod calibration = RangeMethod::kMse;    // How the ranges of eight bits are found.
  std::vector<std::vector<Tensor>> calibrate_on;  // Inputs for that; empty: the samples.
  double search_seconds = 60;                     // About how long "mixed" may look for a plan.
};

struct PrecisionTrial {
  std::string precision;
  std::shared_ptr<const PrecisionPlan> plan;  // Null where the precision wants none.
  double milliseconds = 0;                    // The least of a few runs of the first sample, in turns with the others.
  // The largest over the outputs of: rms of the difference over rms of the output.
  double worst_relative_rms = 0;
  bool is_within_budget = false;
  std::string reason;              // Why not: the output and what is found and expected, or the error of the session.
  std::vector<std::string> notes;  // What the plan is like, a line each.
};

struct PrecisionChoice {
  std::string precision;                      // The fastest of those within the budget; the first if there is none.
  std::shared_ptr<const PrecisionPlan> plan;  // Of that one.
  std::vector<PrecisionTrial> trials;         // All, in the delegate's order.
};

// Tries each precision of delegate `name` but "auto". `samples` are inputs as Session::Run takes them; the more like
// real ones, the better the choice. For precisions that want a plan, the samples calibrate: "int8" is eight bits where
// they are possible, but for the first and the last layer; "mixed" is what SearchPlan finds. `session_options` are
// without a delegate, as the session will have them. InvalidArgument without samples, for an unknown delegate and for a
// precision that it does not have; errors of the reference run.
absl::StatusOr<PrecisionChoice> ChoosePrecision(const Graph& graph, absl::Span<const std::string> feeds,
                                                absl::Span<const std::string> fetches,
                                                absl::Span<const std::vector<Tensor>> samples, const std::string& name,
                                                const SessionOptions& session_options,
                                                const ChoiceOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_CHOICE_H_

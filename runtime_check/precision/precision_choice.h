// Precision `auto`: measures the precisions of a delegate and chooses the fastest one within an accuracy budget.
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
#include "runtime_check/delegates/delegate_options.h"
#include "runtime_check/precision/precision_plan.h"
#include "runtime_check/precision/value_range.h"
#include "runtime_check/session.h"

namespace permafrost {

struct ChoiceOptions {
  AccuracyBudget budget;
  std::vector<std::string> precisions;            // Candidates; empty: all that the delegate has.
  RangeMethod calibration = RangeMethod::kMse;    // Selects the ranges of 8-bit values.
  std::vector<std::vector<Tensor>> calibrate_on;  // Calibration inputs; empty: the samples.
  double search_seconds = 60;                     // Approximate limit on the search for a "mixed" plan.
  // The switches of the delegate, such as no_winograd. Precision, plan and packed weights are those of each trial.
  DelegateOptions delegate;
};

struct PrecisionTrial {
  std::string precision;
  std::shared_ptr<const PrecisionPlan> plan;  // Null if the precision needs no plan.
  double milliseconds = 0;  // Minimum of a few runs of the first sample, interleaved with the other trials.
  // Maximum over the outputs of the rms of the difference divided by the rms of the output.
  double worst_relative_rms = 0;
  bool is_within_budget = false;
  std::string
      reason;  // Reason for rejection: the output with the expected and the actual error, or the session's error.
  std::vector<std::string> notes;  // Description of the plan, one line each.
};

struct PrecisionChoice {
  std::string precision;                      // The fastest one within the budget; the first one if there is none.
  std::shared_ptr<const PrecisionPlan> plan;  // Plan of that precision.
  std::vector<PrecisionTrial> trials;         // All, in the delegate's order.
};

// Tries each precision of delegate `name` except "auto"; of a list of delegates (delegates/delegate_list.h), f32.
// `samples` are inputs as Session::Run takes them; samples close to real inputs give a better choice. For precisions
// that need a plan, the samples also calibrate. "int8" computes in 8 bits where possible, except in the first and the
// last layer; "mixed" is the result of SearchPlan. `session_options` have no delegate, and are otherwise those of the
// later session. InvalidArgument without samples, for an unknown delegate and for a precision that it does not have;
// errors of the reference run.
absl::StatusOr<PrecisionChoice> ChoosePrecision(const Graph& graph, absl::Span<const std::string> feeds,
                                                absl::Span<const std::string> fetches,
                                                absl::Span<const std::vector<Tensor>> samples, const std::string& name,
                                                const SessionOptions& session_options,
                                                const ChoiceOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_CHOICE_H_

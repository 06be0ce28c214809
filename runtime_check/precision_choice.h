// Precision `auto`: the fastest precision of a delegate that stays inside a budget of error, found by measurement.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_CHOICE_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/session.h"

namespace permafrost {

// Against the reference kernels, for each output and over all samples together: the root mean square of the differences
// must be within one of the two bounds. An output that holds probabilities of classes (rows of two or more numbers from
// 0 to 1 that add up to 1) must besides have its largest at the same place in each row.
struct AccuracyBudget {
  double relative_rms = 0.03;  // Of the root mean square of the output.
  double absolute_rms = 1e-4;
};

struct PrecisionTrial {
  std::string precision;
  double milliseconds = 0;  // The median of a few runs of the first sample.
  // The largest over the outputs of: rms of the difference over rms of the output.
  double worst_relative_rms = 0;
  bool is_within_budget = false;
  std::string reason;  // Why not: the output and what is found and expected, or the error of the session.
};

struct PrecisionChoice {
  std::string precision;               // The fastest of those within the budget; the delegate's first if there is none.
  std::vector<PrecisionTrial> trials;  // All, in the delegate's order.
};

// Tries each precision of delegate `name` but "auto". `samples` are inputs as Session::Run takes them; the more like
// real ones, the better the choice. `options` without a delegate, as the session will have them. InvalidArgument
// without samples or for an unknown delegate; errors of the reference run.
absl::StatusOr<PrecisionChoice> ChoosePrecision(const Graph& graph, absl::Span<const std::string> feeds,
                                                absl::Span<const std::string> fetches,
                                                absl::Span<const std::vector<Tensor>> samples, const std::string& name,
                                                const SessionOptions& options, const AccuracyBudget& budget = {});

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_CHOICE_H_

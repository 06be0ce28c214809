// Searches for the fastest precision plan that stays within an accuracy budget.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_SEARCH_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_SEARCH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

// Measured error and time of a plan.
struct PlanMeasurement {
  // By output: the rms error divided by the error that the budget allows.
  std::vector<double> shares;
  bool has_other_class = false;
  // By node: seconds of one run. Fused nodes are listed under the last node that was fused.
  std::vector<std::pair<std::string, double>> times;
};
// Measures a plan; `with_times` requests the times too.
using MeasurePlan =
    std::function<absl::StatusOr<PlanMeasurement>(const std::shared_ptr<const PrecisionPlan>& plan, bool with_times)>;

// A layer: a convolution or matrix product, with the nodes that follow it up to the next one.
struct PlanSection {
  std::vector<std::string> nodes;
  std::vector<std::string> layers;  // Convolutions and matrix products among the nodes: one, or none.
  Precision precision = Precision::kF32;
};

// Returns a plan with 8 bits for all convolutions and products, except bfloat16 for the first and the last one.
PrecisionPlan EightBitPlan(const Graph& graph, const DelegationReport& report, PrecisionPlan base);

struct SearchResult {
  PrecisionPlan plan;
  std::vector<PlanSection> sections;
  int measurements = 0;
};

// Searches for a plan. For sections of a few layers, measures the error and the time saved when only that section is
// computed with fewer bits. Then tries to change all sections, those with the best ratio first. A set of changes that
// exceeds the budget, less a margin, is halved until it fits, down to single layers. `precisions` are used in addition
// to f32; `base` has the statistics. `seconds` bounds the number of sections, and approximately the total time.
// NotFound if no plan is within the budget.
absl::StatusOr<SearchResult> SearchPlan(const Graph& graph, const DelegationReport& report, const PrecisionPlan& base,
                                        absl::Span<const Precision> precisions, double seconds,
                                        const MeasurePlan& measure);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_SEARCH_H_

// Which nodes of a model to compute with few bits: the fastest plan that stays inside a budget of error.
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

// What a plan does, measured.
struct PlanMeasurement {
  // By output: the rms error over what the budget allows.
  std::vector<double> shares;
  bool has_other_class = false;
  // By node, for what runs as one by the last that was fused to it: seconds of one run.
  std::vector<std::pair<std::string, double>> times;
};
// `with_times` asks for those too.
using MeasurePlan =
    std::function<absl::StatusOr<PlanMeasurement>(const std::shared_ptr<const PrecisionPlan>& plan, bool with_times)>;

// A layer, a convolution or matrix product, with what follows it up to the next.
struct PlanSection {
  std::vector<std::string> nodes;
  std::vector<std::string> layers;  // The convolutions and matrix products among them: one, or none.
  Precision precision = Precision::kF32;
};

// Eight bits for all but the first and the last convolution or product, which have bfloat16.
PrecisionPlan EightBitPlan(const Graph& graph, const DelegationReport& report, PrecisionPlan base);

struct SearchResult {
  PrecisionPlan plan;
  std::vector<PlanSection> sections;
  int measurements = 0;
};

// Measures, for sections of some layers, the error that each adds when it alone is computed with fewer bits, and the
// time that this saves, and then tries to change all of them, those with the best ratio first: what does not fit the
// budget, with a margin, is halved until it does, down to single layers. `precisions` are those to use beside f32;
// `base` has the statistics. `seconds` bounds the number of sections, and about how long it takes. NotFound where
// nothing fits.
absl::StatusOr<SearchResult> SearchPlan(const Graph& graph, const DelegationReport& report, const PrecisionPlan& base,
                                        absl::Span<const Precision> precisions, double seconds,
                                        const MeasurePlan& measure);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_SEARCH_H_

// The search of optimize_model: finds passes for the weights and a way to run the model within a budget.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_SEARCH_H_
#define PERMAFROST_TOOLS_OPTIMIZING_SEARCH_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "tools/optimizing/budget.h"
#include "tools/optimizing/trial.h"
#include "tools/optimizing/trial_bench.h"
#include "tools/optimizing/weight_groups.h"

namespace permafrost {

enum class Objective { kLatency, kSize, kMemory };

struct SearchSettings {
  OptimizationBudget budget;
  Objective minimize = Objective::kLatency;
  std::vector<std::string> delegates;   // Names of known delegates.
  std::vector<std::string> precisions;  // Precisions to try, besides that of the delegate's default; empty: all.
  int threads = 1;
  int jobs = 1;
  bool shortens_names = false;  // Names of inner nodes may be replaced by short ones.
  bool has_held_back = false;   // The bench has inputs that are held back.
  bool has_seeded = false;      // Random inputs are a check, because the search has real ones.
  // Returns whether the search must end and keep its best result; after that, only the checks of this result run.
  std::function<bool()> must_stop;
  std::function<bool()> is_half_over;  // Returns whether half of the time of the search has passed.
  std::function<void()> begin_checks;  // Called before the checks, which must_stop does not end.
  std::function<void(const std::string& line)> progress;
};

// How much the outputs change if only one group of weights has fewer bits.
struct GroupSensitivity {
  std::optional<double> in_four, in_blocks, in_eight;  // Relative rms of the worst output; not measured if absent.
};

// The accuracy of the result on inputs that the search did not use.
struct HeldBackCheck {
  TrialInputs inputs = TrialInputs::kHeldBack;
  AccuracyMeasure accuracy;
  double share = 0;  // Relative to the budget.
};

// A candidate with all that is known of it.
struct SearchedModel {
  std::string transforms;
  RunChoice run;
  TrialResult result;
  Storage storage;
};

// The trial nearest to the budget.
struct NearestMiss {
  SearchedModel model;
  double accuracy_share = 0, size_share = 0, latency_share = 0;  // Relative to the budget.
};

struct SearchOutcome {
  std::optional<SearchedModel> best;   // Within the budget; absent if no trial is.
  std::vector<HeldBackCheck> checks;   // Of the best one.
  std::optional<NearestMiss> nearest;  // If there is no best one.
  std::string base;                    // Passes before the weights.
  RunChoice baseline;                  // The fastest run of the original in float.
  TrialResult original;                // The original, as it would be written.
  std::vector<WeightGroup> groups;
  std::vector<GroupSensitivity> sensitivities;  // By group.
  // Times of ways to run the model, and of the result in turn with the original, which comes first.
  std::vector<TimedTrial> run_times, final_times;
  std::vector<std::string> notes;
  bool was_interrupted = false;
  bool is_calibrated = false;  // Codes of weights are those of the bench's calibration.
};

// Searches. `bench` measures; after each trial it has its result, so that a search with the same journal repeats all
// decisions. Errors are those of the bench, except Cancelled, which ends the search early.
//
// Ways to run (delegate, precision) are measured first on the folded model, for error and time. The weights are then
// reduced step by step: each group to sixteen, eight and four bits, with codes that are chosen by inputs if that is
// better. The error of each step alone, relative to the bytes that it saves, gives the order of the steps. Bisection
// finds how many of them fit the budget together, and groups of the remaining ones are tried by halving. The result is
// checked on inputs that are held back; if it fails there, the search is repeated with a smaller budget.
absl::StatusOr<SearchOutcome> SearchModel(const Graph& original, TrialBench& bench, const SearchSettings& settings);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_SEARCH_H_

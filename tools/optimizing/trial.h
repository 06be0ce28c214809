// A trial of optimize_model: a pipeline of passes together with a way to run its result, and what was measured.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_TRIAL_H_
#define PERMAFROST_TOOLS_OPTIMIZING_TRIAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegates/delegate_options.h"
#include "tools/command_line/json.h"
#include "tools/optimizing/budget.h"

namespace permafrost {

// How a model is run.
struct RunChoice {
  std::string delegate = kReferenceDelegate;
  std::string precision = "f32";
  int threads = 1;

  // Returns "--delegate=onednn --precision=f32 --threads=2".
  std::string Flags() const;
  friend bool operator==(const RunChoice& a, const RunChoice& b) {
    return a.delegate == b.delegate && a.precision == b.precision && a.threads == b.threads;
  }
};

// The inputs of a measurement.
enum class TrialInputs {
  kFew,       // The first inputs of the search.
  kSearch,    // All inputs of the search.
  kHeldBack,  // Inputs that the search does not see.
  kSeeded,    // Random inputs, which the search does not see unless there are no others.
};
absl::string_view NameOf(TrialInputs inputs);

struct TrialRequest {
  std::string transforms;  // In the grammar of transform_graph; empty: the original model.
  RunChoice run;
  TrialInputs inputs = TrialInputs::kSearch;

  // Identifies the request in a journal.
  std::string Key() const;
};

// The measurements of a trial, in all respects but time.
struct TrialResult {
  std::string failure;  // The reason why there are no measurements; empty if there are.
  AccuracyMeasure accuracy;
  uint64_t bytes = 0;             // Size of the file as it would be written.
  uint64_t compressed_bytes = 0;  // Size compressed by zstd; 0 if it was not measured.
  int64_t memory_bytes = 0;       // Activations and constants that a session holds.
  int64_t nodes = 0;
};

// A time measured in turn with other contestants.
struct TimedTrial {
  TrialRequest request;
  std::string failure;
  double median_seconds = 0;
  double low_seconds = 0, high_seconds = 0;  // 95 % interval of the median.
  // The time relative to the first contestant, with its 95 % interval.
  double ratio = 0, low_ratio = 0, high_ratio = 0;
  int64_t rounds = 0;
};

// Write and read results as JSON values. Readers return InvalidArgument for another structure.
void WriteTrialResult(const TrialResult& result, JsonWriter* json);
absl::StatusOr<TrialResult> ParseTrialResult(absl::string_view text);
void WriteTimes(const std::vector<TimedTrial>& times, JsonWriter* json);
// Fills the times of `requests`, which are those that were written.
absl::StatusOr<std::vector<TimedTrial>> ParseTimes(absl::string_view text, const std::vector<TrialRequest>& requests);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_TRIAL_H_

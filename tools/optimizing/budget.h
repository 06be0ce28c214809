// Budgets of optimize_model: limits on accuracy, size and latency, their parsing, and the judgement of measurements.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_BUDGET_H_
#define PERMAFROST_TOOLS_OPTIMIZING_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// The error of one output over a group of inputs, relative to the original model.
struct OutputMeasure {
  std::string name;
  double relative_rms = 0;  // The rms of the differences divided by the rms of the output; infinite if not comparable.
  double rms = 0;
  int64_t class_rows = 0;     // Rows of class probabilities; 0 for other outputs.
  int64_t other_classes = 0;  // Rows among them with another top class.
};

// The accuracy against labels; no rows without labels.
struct LabelMeasure {
  int64_t rows = 0;
  int64_t right = 0;            // Of the candidate.
  int64_t reference_right = 0;  // Of the original.
};

struct AccuracyMeasure {
  std::vector<OutputMeasure> outputs;
  LabelMeasure labels;

  // Returns the largest relative rms of the outputs whose absolute error exceeds AccuracyBudget::absolute_rms.
  double worst_relative_rms() const;
  // Returns the lost share of right answers, or without labels the largest share of rows with another top class.
  double accuracy_drop() const;
};

// A limit on the latency: seconds, or a ratio to the original model.
struct LatencyLimit {
  double seconds = 0;  // 0: `ratio` counts.
  double ratio = 0;
};

struct OptimizationBudget {
  std::optional<double> max_error;          // Relative rms of each output.
  std::optional<double> max_accuracy_drop;  // Fraction.
  std::optional<uint64_t> max_bytes;
  std::optional<LatencyLimit> max_latency;
};

// The limit on the error if neither max_error nor max_accuracy_drop is given: that of AccuracyBudget::relative_rms.
inline constexpr double kDefaultMaxError = 0.03;
// With at least this many rows, unchanged classes suffice instead of a small error: see QualityBounds::min_rows.
inline constexpr int64_t kMinClassRows = 100;

// Returns the error relative to the allowed one: at most 1 if the accuracy is within the budget. Infinite if an output
// is not comparable.
double AccuracyShare(const OptimizationBudget& budget, const AccuracyMeasure& measure);
// Returns the size relative to the allowed one; 0 without a limit.
double SizeShare(const OptimizationBudget& budget, uint64_t bytes);
// Returns the latency relative to the allowed one; 0 without a limit. `original_seconds` is that of the original model.
double LatencyShare(const OptimizationBudget& budget, double seconds, double original_seconds);

// Returns the accuracy limits as a text: "rms error of each output at most 3 %".
std::string AccuracyText(const OptimizationBudget& budget);

// Parses "0.5%" or "0.005" as a fraction from 0 to 1.
absl::StatusOr<double> ParseFraction(absl::string_view text);
// Parses "6MB", "600kB", "1.5GB", "4MiB" or "12345", a number of bytes greater than 0.
absl::StatusOr<uint64_t> ParseByteCount(absl::string_view text);
// Parses "10ms", "500us", "1.5s", "10m" or "2h", greater than 0; a number without unit is seconds.
absl::StatusOr<double> ParseDuration(absl::string_view text);
// Parses a duration, or "0.7x".
absl::StatusOr<LatencyLimit> ParseLatencyLimit(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_BUDGET_H_

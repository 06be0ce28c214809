// benchmark_model --against: measures two models, or one before and after a change, in alternation.
#ifndef PERMAFROST_TOOLS_BENCHMARK_MODEL_COMPARISON_H_
#define PERMAFROST_TOOLS_BENCHMARK_MODEL_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/interleaved_runs.h"

namespace permafrost {

// The result of comparing two models.
struct ModelComparison {
  std::vector<std::string> models;  // The two names.
  std::vector<ContestResult> results;
  bool was_interrupted = false;
  std::vector<std::string> notes;  // NonFiniteNotes of both models, with the model's name.

  // Returns the time of the second model divided by that of the first.
  Sample ratio() const { return RatioOf(results[1], results[0]); }
};

// Compares both models with the same options. Errors name the model.
absl::StatusOr<ModelComparison> CompareModels(const BenchmarkSubject& first, const std::string& first_name,
                                              const BenchmarkSubject& second, const std::string& second_name,
                                              const SessionOptions& options, const ContestLimits& limits,
                                              const Console& console);

void PrintModelComparison(const ModelComparison& comparison, const Console& console);
void WriteModelComparison(const ModelComparison& comparison, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_MODEL_COMPARISON_H_

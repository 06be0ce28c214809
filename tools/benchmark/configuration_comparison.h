// benchmark_model --compare: measures every combination of delegate, precision and number of threads, and names the one
// to ship.
#ifndef PERMAFROST_TOOLS_BENCHMARK_CONFIGURATION_COMPARISON_H_
#define PERMAFROST_TOOLS_BENCHMARK_CONFIGURATION_COMPARISON_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/delegates/delegate_options.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/interleaved_runs.h"

namespace permafrost {

// A combination of delegate, precision and number of threads.
struct Configuration {
  std::string delegate;
  std::string precision;
  int num_threads = 1;

  // Returns the flags, such as "--delegate=onednn --precision=bf16 --threads=2".
  std::string Flags() const;
};

// A configuration with its measurement and accuracy.
struct ComparedConfiguration {
  Configuration configuration;
  // The reason why the configuration cannot win: its accuracy is too low (see ChoosePrecision), or it does not run.
  // Empty otherwise.
  std::string objection;
  ContestResult result;
};

// The result of comparing configurations.
struct Comparison {
  // Fastest first; those that do not run last.
  std::vector<ComparedConfiguration> configurations;
  // The index of the fastest without an objection; -1: none runs.
  int winner = -1;
  std::vector<int> equals;  // Indices of those not significantly slower than the winner.
  bool was_interrupted = false;
  std::vector<std::string> notes;  // NonFiniteNotes of the outputs of the reference kernels.
};

// Returns all known delegates and precisions, with 1, 2, 4 ... threads and one thread per processor. `most_threads` 0:
// the number of processors.
std::vector<Configuration> AllConfigurations(int most_threads);

// Compares configurations. `options` holds no delegate; `switches` has the switches of all delegates. Returns errors of
// the reference kernels only; an error of a configuration becomes its objection.
absl::StatusOr<Comparison> CompareConfigurations(const BenchmarkSubject& subject,
                                                 const std::vector<Configuration>& configurations,
                                                 const SessionOptions& options, const DelegateOptions& switches,
                                                 const ContestLimits& limits, const Console& console);

void PrintComparison(const Comparison& comparison, const Console& console);
// Writes the comparison as one object.
void WriteComparison(const Comparison& comparison, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_CONFIGURATION_COMPARISON_H_

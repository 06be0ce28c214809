// benchmark_model --compare: every delegate with every precision and number of threads, and which of them to ship.
#ifndef PERMAFROST_TOOLS_BENCHMARK_CONFIGURATION_COMPARISON_H_
#define PERMAFROST_TOOLS_BENCHMARK_CONFIGURATION_COMPARISON_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/interleaved_runs.h"

namespace permafrost {

struct Configuration {
  std::string delegate;
  std::string precision;
  int num_threads = 1;

  // "--delegate=onednn --precision=bf16 --threads=2".
  std::string Flags() const;
};

struct ComparedConfiguration {
  Configuration configuration;
  // Why the answers are not good enough to win (see ChoosePrecision), or why it does not run at all; empty otherwise.
  std::string objection;
  ContestResult result;
};

struct Comparison {
  std::vector<ComparedConfiguration> configurations;  // The fastest first; those that do not run last.
  // The fastest without an objection; -1: none runs.
  int winner = -1;
  std::vector<int> equals;  // Not surely slower than the winner.
  bool was_interrupted = false;
  std::vector<std::string> notes;  // NonFiniteNotes of the reference kernels' answers.
};

// All known delegates and precisions, with 1, 2, 4 ... threads and one for each processor. `most_threads` 0: as many as
// there are processors.
std::vector<Configuration> AllConfigurations(int most_threads);

// `options` without a delegate. Errors of the reference kernels alone; those of a configuration are its objection.
absl::StatusOr<Comparison> CompareConfigurations(const BenchmarkSubject& subject,
                                                 const std::vector<Configuration>& configurations,
                                                 const SessionOptions& options, const ContestLimits& limits,
                                                 const Console& console);

void PrintComparison(const Comparison& comparison, const Console& console);
// As one object.
void WriteComparison(const Comparison& comparison, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_CONFIGURATION_COMPARISON_H_

// Runs the models of a report in alternation, and profiles each.
#ifndef PERMAFROST_TOOLS_REPORT_MODEL_RUNS_H_
#define PERMAFROST_TOOLS_REPORT_MODEL_RUNS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"
#include "tools/report/model_facts.h"

namespace permafrost {

struct RunToReport {
  const BenchmarkSubject* subject;
  SessionOptions options;
  ModelFacts* facts;  // Receives `run` and the node times.
};

// Measures for about `seconds` altogether: first all models in alternation, so that a slowdown of the machine affects
// all of them, then each with a profiler. A model that does not run gets a note and no times. Cancelled after Ctrl-C.
absl::Status MeasureModels(absl::Span<const RunToReport> runs, double seconds, const Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_MODEL_RUNS_H_

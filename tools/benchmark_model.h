// benchmark_model: says how long a model takes, where the time and the memory go, and what would be faster.
#ifndef PERMAFROST_TOOLS_BENCHMARK_MODEL_H_
#define PERMAFROST_TOOLS_BENCHMARK_MODEL_H_

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/benchmark/benchmark_flags.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"

namespace permafrost {

// Prints what was measured. Cancelled after Ctrl-C, with what was measured until then printed; Aborted when the time is
// a regression from the baseline.
absl::Status BenchmarkModel(const BenchmarkModelOptions& options, FileSystem& files, Console& console);

Tool BenchmarkModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_MODEL_H_

// benchmark_model: measures latency, the time and memory of each node, and alternative configurations.
#ifndef PERMAFROST_TOOLS_BENCHMARK_MODEL_H_
#define PERMAFROST_TOOLS_BENCHMARK_MODEL_H_

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/benchmark/benchmark_flags.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"

namespace permafrost {

// Measures and prints. Cancelled after Ctrl-C; the results measured until then are printed. Aborted if the time is a
// regression from the baseline.
absl::Status BenchmarkModel(const BenchmarkModelOptions& options, FileSystem& files, Console& console);

Tool BenchmarkModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_MODEL_H_

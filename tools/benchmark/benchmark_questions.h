// The modes of benchmark_model that print a table of their own: --compare, --against, --with_load, --device.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_QUESTIONS_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_QUESTIONS_H_

#include "absl/status/status.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_flags.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"

namespace permafrost {

// Returns whether the flags select one of these modes.
bool AsksQuestion(const BenchmarkModelOptions& options);

// Runs the selected mode and prints its table. `session` holds the session options derived from the flags. REQUIRES:
// AsksQuestion. Cancelled after Ctrl-C; the results measured until then are printed.
absl::Status AnswerQuestion(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                            const SessionOptions& session, FileSystem& files, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_QUESTIONS_H_

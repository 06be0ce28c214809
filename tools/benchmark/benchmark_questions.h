// The questions that benchmark_model answers with a table of their own: --compare, --against, --with_load, --device.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_QUESTIONS_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_QUESTIONS_H_

#include "absl/status/status.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_flags.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"

namespace permafrost {

// Whether the flags ask one of them.
bool AsksQuestion(const BenchmarkModelOptions& options);

// Measures and prints. `session` is what the flags make of a session. REQUIRES: AsksQuestion. Cancelled after Ctrl-C,
// with what was measured until then printed.
absl::Status AnswerQuestion(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                            const SessionOptions& session, FileSystem& files, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_QUESTIONS_H_

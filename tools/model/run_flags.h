// The flags that choose who computes a model. Links the delegates, so it is for tools that let the user choose.
#ifndef PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_
#define PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/command_line/flags.h"

namespace permafrost {

// What every tool that runs models lets the user choose.
struct RunFlags {
  std::string delegate = "reference";  // A name, or the path of a shared library.
  std::string precision;            // Empty: what the delegate does where nobody says; see SettlePrecision for others.
  std::string calibration = "mse";  // A RangeMethod.
  std::string precision_plan;       // A file, or empty.
  std::vector<std::string> custom_ops;
  int32_t threads = 0;
  bool explain = false;
};

// --delegate, --precision, --calibration, --precision_plan, --custom_ops, --threads, --explain.
void AddRunFlags(RunFlags* run, FlagTable* flags);

// The same run twice: by the built-in kernels, and as the flags say. Ops that only a library knows run in both.
struct RunOptions {
  SessionOptions reference;
  SessionOptions chosen;
};

// Loads what the flags name. InvalidArgument for an unknown delegate or precision (with the known ones), and a number
// of threads that is negative; errors of LoadExternalDelegate and LoadCustomOps. `files` must outlive the result.
absl::StatusOr<RunOptions> MakeRunOptions(const RunFlags& run, FileSystem& files);

// With --precision=auto: gives `chosen` the fastest precision of the delegate that stays inside the budget on the first
// few samples, and says which on the console. With int8 or mixed: plans it with them. Nothing otherwise. With
// --precision_plan, what was settled is read from the file, or written where there is none. Errors as of
// ChoosePrecision, ParsePrecisionPlan and of files; FailedPrecondition where the precision does not run, or the file is
// for something else. Returns the precision that it is now: what was chosen, or the flag's, or "f32" without one.
absl::StatusOr<std::string> SettlePrecision(const RunFlags& run, const Graph& graph, absl::Span<const Endpoint> inputs,
                                            absl::Span<const Endpoint> outputs,
                                            absl::Span<const std::vector<Tensor>> samples, FileSystem& files,
                                            SessionOptions* chosen, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_

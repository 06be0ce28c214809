// Runs functions in child processes, so that a crash or a hang in one of them does not end this process.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_ISOLATED_RUNS_H_
#define PERMAFROST_TOOLS_OPTIMIZING_ISOLATED_RUNS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace permafrost {

// A function whose result is the text that it returns. It runs in a copy of this process.
using IsolatedFunction = std::function<absl::StatusOr<std::string>()>;

struct IsolationLimits {
  int jobs = 1;                  // Number of processes at the same time.
  double timeout_seconds = 300;  // Limit of each function.
};

// Runs each function in a child of its own, and calls `done` in this process with its index and its result, in the
// order in which they end. A status that a function returns is passed on. Internal if the child crashes, with the
// signal; DeadlineExceeded if it exceeds the limit; Cancelled for functions that were running or waiting when
// `must_stop` returned true (may be empty); it is called about twenty times a second. The children end with this
// process, and ignore SIGINT.
//
// REQUIRES: no other thread of this process holds locks, such as those of a running session.
void RunIsolated(const std::vector<IsolatedFunction>& functions, const IsolationLimits& limits,
                 const std::function<bool()>& must_stop,
                 absl::FunctionRef<void(size_t index, absl::StatusOr<std::string> result)> done);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_ISOLATED_RUNS_H_

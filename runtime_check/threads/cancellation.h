// Cancellation of a run while it is inside a kernel.
//
//   const CancellationScope scope(&is_cancelled);   // The session, around a run.
//   if (RunIsCancelled()) return;                   // A kernel, in each block of a long loop.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_CANCELLATION_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_CANCELLATION_H_

#include <functional>

#include "absl/status/status.h"
#include "graph/base/selection.h"

namespace permafrost {

using CancellationFunction = std::function<bool()>;

// Sets the function of this thread, which may be null, and returns the one before. Use CancellationScope.
const CancellationFunction* ExchangeCancellation(const CancellationFunction* is_cancelled);
// Returns the function of this thread; null if there is none.
const CancellationFunction* CancellationOfThread();

// While an object lives, RunIsCancelled() asks `is_cancelled` on this thread, and on the threads that run pieces of its
// ThreadPool loops. The function must be thread-safe, outlive the scope, and keep returning true once it did. A null
// pointer or an empty function cancels nothing. Scopes nest; the innermost counts. Selective builds cancel only loops
// of the graph, between iterations.
class CancellationScope {
 public:
  explicit CancellationScope(const CancellationFunction* is_cancelled) {
    if constexpr (!selection::kIsSelective) before_ = ExchangeCancellation(is_cancelled);
  }
  ~CancellationScope() {
    if constexpr (!selection::kIsSelective) ExchangeCancellation(before_);
  }
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  const CancellationFunction* before_ = nullptr;
};

// Returns whether the run on this thread is to stop. A kernel that stops early leaves its outputs undefined: the
// executor returns an error after the kernel. Costs a few nanoseconds, and what the function costs.
inline bool RunIsCancelled() {
  if constexpr (selection::kIsSelective) return false;
  const CancellationFunction* is_cancelled = CancellationOfThread();
  return is_cancelled != nullptr && (*is_cancelled)();
}

// Returns Cancelled if RunIsCancelled().
inline absl::Status CheckNotCancelled() {
  if (RunIsCancelled()) return absl::CancelledError("the run was cancelled");
  return absl::OkStatus();
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_CANCELLATION_H_

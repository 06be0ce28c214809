// Keeps the cancellation function of each thread.
#include "runtime_check/threads/cancellation.h"

#include <utility>

namespace permafrost {
namespace {

thread_local const CancellationFunction* current = nullptr;

}  // namespace

const CancellationFunction* ExchangeCancellation(const CancellationFunction* is_cancelled) {
  return std::exchange(current, is_cancelled != nullptr && *is_cancelled ? is_cancelled : nullptr);
}

const CancellationFunction* CancellationOfThread() { return current; }

}  // namespace permafrost

// Limits on the number of iterations of a loop.
#ifndef PERMAFROST_RUNTIME_CHECK_EXECUTION_LOOP_LIMITS_H_
#define PERMAFROST_RUNTIME_CHECK_EXECUTION_LOOP_LIMITS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

struct LoopLimits {
  std::function<bool()> is_cancelled;  // Empty: never.
  int64_t most_iterations = 0;         // Per loop; 0: no limit.

  // Returns Cancelled or ResourceExhausted if the loop must stop after this many iterations.
  absl::Status CheckIteration(int64_t iteration, absl::string_view loop) const;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_EXECUTION_LOOP_LIMITS_H_

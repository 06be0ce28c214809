// As Abseil's: what time it is.
#ifndef PERMAFROST_SELECTIVE_ABSL_TIME_CLOCK_H_
#define PERMAFROST_SELECTIVE_ABSL_TIME_CLOCK_H_

#include <ctime>

#include "absl/time/time.h"

namespace absl {
inline namespace selective {

inline Time Now() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return {int64_t{now.tv_sec} * 1000000000 + now.tv_nsec};
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_TIME_CLOCK_H_

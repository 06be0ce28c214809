// Replacement for Abseil's Now.
#ifndef PERMAFROST_SELECTIVE_ABSL_TIME_CLOCK_H_
#define PERMAFROST_SELECTIVE_ABSL_TIME_CLOCK_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "absl/time/time.h"

namespace absl {
inline namespace selective {

inline Time Now() {
  timespec now = {};
  // A direct system call: the C library's vDSO access takes most of a kilobyte.
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return {int64_t{now.tv_sec} * 1000000000 + now.tv_nsec};
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_TIME_CLOCK_H_

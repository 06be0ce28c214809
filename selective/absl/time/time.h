// Replacement for Abseil's Time and Duration, in nanoseconds.
#ifndef PERMAFROST_SELECTIVE_ABSL_TIME_TIME_H_
#define PERMAFROST_SELECTIVE_ABSL_TIME_TIME_H_

#include <chrono>
#include <cstdint>
#include <limits>

namespace absl {
inline namespace selective {

struct Duration {
  int64_t nanoseconds = 0;
};
struct Time {
  int64_t nanoseconds = 0;  // Since 1970.
};

inline Duration operator-(Time later, Time earlier) { return {later.nanoseconds - earlier.nanoseconds}; }
inline bool operator<(Duration a, Duration b) { return a.nanoseconds < b.nanoseconds; }
inline bool operator!=(Duration a, Duration b) { return a.nanoseconds != b.nanoseconds; }
inline Duration ZeroDuration() { return {}; }
inline Duration InfiniteDuration() { return {std::numeric_limits<int64_t>::max()}; }
inline Duration Nanoseconds(int64_t nanoseconds) { return {nanoseconds}; }
inline Duration FromChrono(std::chrono::nanoseconds duration) { return {duration.count()}; }
inline int64_t ToInt64Nanoseconds(Duration duration) { return duration.nanoseconds; }

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_TIME_TIME_H_

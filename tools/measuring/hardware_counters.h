// Counts what the processor does, through the kernel's performance events.
#ifndef PERMAFROST_TOOLS_MEASURING_HARDWARE_COUNTERS_H_
#define PERMAFROST_TOOLS_MEASURING_HARDWARE_COUNTERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace permafrost {

struct CounterValue {
  std::string name;  // "cycles", "instructions", "cache misses" ...
  double count = 0;  // Scaled up where the processor had to share its counters.
};

// Counts for this thread and those that it starts after Open. Not thread-safe.
class HardwareCounters {
 public:
  // Those that the machine has. Unavailable, with the reason and what can be done, when there are none: many virtual
  // machines and containers have none.
  static absl::StatusOr<std::unique_ptr<HardwareCounters>> Open();
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;

  // From zero.
  void Start();
  void Stop();
  std::vector<CounterValue> Read() const;

 private:
  struct Counter {
    std::string name;
    int file;
  };
  explicit HardwareCounters(std::vector<Counter> counters);

  std::vector<Counter> counters_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_HARDWARE_COUNTERS_H_

// Reads hardware performance counters through the kernel's performance events.
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
  double count = 0;  // Scaled up if the kernel multiplexed the counters.
};

// Counts events of the calling thread and the threads that it starts after Open. Not thread-safe.
class HardwareCounters {
 public:
  // Opens the counters that the machine has. Unavailable, with the reason and a remedy, if there are none, as in many
  // virtual machines and containers.
  static absl::StatusOr<std::unique_ptr<HardwareCounters>> Open();
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;

  // Resets the counters to zero and starts them.
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

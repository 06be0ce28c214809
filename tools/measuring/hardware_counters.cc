// Opens one event per counter: a group could not follow threads that are started later.
#include "tools/measuring/hardware_counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

struct Event {
  const char* name;
  uint32_t type;
  uint64_t config;
};

constexpr Event kEvents[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branch misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
};

int OpenEvent(const Event& event) {
  struct perf_event_attr attr;
  std::memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = event.type;
  attr.config = event.config;
  attr.disabled = 1;
  attr.inherit = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

// Returns the kernel's setting for access to counters, or an empty text.
std::string ParanoidLevel() {
  std::FILE* file = std::fopen("/proc/sys/kernel/perf_event_paranoid", "re");
  if (file == nullptr) return "";
  int level = 0;
  const bool is_read = std::fscanf(file, "%d", &level) == 1;
  std::fclose(file);
  if (!is_read || level <= 2) return "";
  return absl::StrCat("; /proc/sys/kernel/perf_event_paranoid is ", level, ", and 2 would allow it");
}

}  // namespace

HardwareCounters::HardwareCounters(std::vector<Counter> counters) : counters_(std::move(counters)) {}

HardwareCounters::~HardwareCounters() {
  for (const Counter& counter : counters_) close(counter.file);
}

absl::StatusOr<std::unique_ptr<HardwareCounters>> HardwareCounters::Open() {
  std::vector<Counter> counters;
  int error = 0;
  for (const Event& event : kEvents) {
    const int file = OpenEvent(event);
    if (file >= 0) {
      counters.push_back({event.name, file});
    } else if (error == 0) {
      error = errno;
    }
  }
  if (!counters.empty()) return std::unique_ptr<HardwareCounters>(new HardwareCounters(std::move(counters)));
  const bool is_missing = error == ENOENT || error == EOPNOTSUPP || error == ENODEV;
  return absl::UnavailableError(absl::StrCat("the kernel gives no hardware counters: ", std::strerror(error),
                                             is_missing ? "; a virtual machine often has none" : ParanoidLevel()));
}

void HardwareCounters::Start() {
  for (const Counter& counter : counters_) {
    ioctl(counter.file, PERF_EVENT_IOC_RESET, 0);
    ioctl(counter.file, PERF_EVENT_IOC_ENABLE, 0);
  }
}

void HardwareCounters::Stop() {
  for (const Counter& counter : counters_) ioctl(counter.file, PERF_EVENT_IOC_DISABLE, 0);
}

std::vector<CounterValue> HardwareCounters::Read() const {
  std::vector<CounterValue> values;
  for (const Counter& counter : counters_) {
    uint64_t fields[3] = {};  // Count, nanoseconds enabled, nanoseconds running.
    if (read(counter.file, fields, sizeof(fields)) != static_cast<ssize_t>(sizeof(fields)) || fields[2] == 0) continue;
    const double share = static_cast<double>(fields[1]) / static_cast<double>(fields[2]);
    values.push_back({counter.name, static_cast<double>(fields[0]) * share});
  }
  return values;
}

}  // namespace permafrost

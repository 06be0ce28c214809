// Reads the available memory from /proc and the control group, and limits the data segment of the process.
#include "tools/command_line/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace permafrost {
namespace {

constexpr uint64_t kUnknownAvailable = uint64_t{4} << 30;

std::atomic<uint64_t> in_force{0};  // 0: no MemoryLimit exists.

// Returns the number that follows `key` in a file with lines "key number", in any unit; with an empty key, the first
// number of the file.
std::optional<uint64_t> NumberIn(const std::string& path, const char* key) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  std::optional<uint64_t> found;
  char line[256];
  while (!found.has_value() && std::fgets(line, sizeof(line), file) != nullptr) {
    const size_t length = std::strlen(key);
    unsigned long long number;
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, "%llu", &number) == 1) found = number;
    if (length == 0) break;
  }
  std::fclose(file);
  return found;
}

// Returns what the control group of this process leaves: version 2, at its place in a container.
std::optional<uint64_t> LeftByControlGroup() {
  const std::optional<uint64_t> most = NumberIn("/sys/fs/cgroup/memory.max", "");  // "max" without a limit.
  const std::optional<uint64_t> used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (!most.has_value() || !used.has_value()) return std::nullopt;
  // Pages of files are given back when memory is short.
  const uint64_t cached = NumberIn("/sys/fs/cgroup/memory.stat", "inactive_file ").value_or(0);
  const uint64_t taken = *used - std::min(*used, cached);
  return *most - std::min(*most, taken);
}

// Returns the bytes of writable private memory of this process, which is what RLIMIT_DATA counts.
std::optional<uint64_t> DataBytes() {
  const std::optional<uint64_t> kilobytes = NumberIn("/proc/self/status", "VmData:");
  if (!kilobytes.has_value()) return std::nullopt;
  return *kilobytes * 1024;
}

}  // namespace

uint64_t AvailableMemory() {
  const std::optional<uint64_t> kilobytes = NumberIn("/proc/meminfo", "MemAvailable:");
  const uint64_t of_machine = kilobytes.has_value() ? *kilobytes * 1024 : kUnknownAvailable;
  return std::min(of_machine, LeftByControlGroup().value_or(of_machine));
}

uint64_t MemoryLimitInForce() {
  const uint64_t limit = in_force.load(std::memory_order_relaxed);
  return limit != 0 ? limit : AvailableMemory() / 2;
}

MemoryLimit::MemoryLimit(uint64_t bytes) {
  if (bytes == 0) bytes = AvailableMemory() / 2;
  in_force.store(std::max<uint64_t>(bytes, 1), std::memory_order_relaxed);
  const std::optional<uint64_t> data = DataBytes();
  if (!data.has_value() || getrlimit(RLIMIT_DATA, &before_) != 0) return;
  rlimit limit = before_;
  if (bytes > std::numeric_limits<rlim_t>::max() - *data) return;
  limit.rlim_cur = std::min<rlim_t>(*data + bytes, before_.rlim_cur);
  is_set_ = setrlimit(RLIMIT_DATA, &limit) == 0;
}

MemoryLimit::~MemoryLimit() {
  in_force.store(0, std::memory_order_relaxed);
  if (is_set_) setrlimit(RLIMIT_DATA, &before_);
}

}  // namespace permafrost

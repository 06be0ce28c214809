// Reads the names from the kernel.
#include "tools/measuring/machine_name.h"

#include <sys/utsname.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace permafrost {
namespace {

// Returns the name in /proc/cpuinfo, empty if there is none, as on most ARM processors.
std::string ProcessorName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) return "";
    return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return "";
}

}  // namespace

std::string MachineName() {
  std::vector<std::string> parts;
  utsname system = {};
  const bool has_system = uname(&system) == 0;
  if (const std::string name = ProcessorName(); !name.empty()) {
    parts.push_back(name);
  } else if (has_system) {
    parts.emplace_back(system.machine);
  }
  const unsigned cores = std::thread::hardware_concurrency();
  if (cores > 0) parts.push_back(absl::StrCat(cores, cores == 1 ? " core" : " cores"));
  if (has_system) parts.push_back(absl::StrCat(system.sysname, " ", system.release));
  return absl::StrJoin(parts, ", ");
}

std::string MeasurementDate() {
  absl::Time time = absl::Now();
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  int64_t seconds;
  if (epoch != nullptr && absl::SimpleAtoi(epoch, &seconds)) time = absl::FromUnixSeconds(seconds);
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

}  // namespace permafrost

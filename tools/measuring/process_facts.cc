// Reads getrusage and /proc.
#include "tools/measuring/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

namespace permafrost {

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    facts.peak_resident_bytes = int64_t{usage.ru_maxrss} * 1024;  // Linux reports kibibytes.
    facts.involuntary_switches = usage.ru_nivcsw;
  }
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return facts;
  long long all = 0, resident = 0;
  if (std::fscanf(file, "%lld %lld", &all, &resident) == 2) facts.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  std::fclose(file);
  return facts;
}

}  // namespace permafrost

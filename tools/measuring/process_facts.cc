// Asks getrusage, /proc and the scheduler.
#include "tools/measuring/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace permafrost {
namespace {

std::vector<int> ProcessorsIn(const cpu_set_t& set) {
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

absl::Status BadProcessors(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("found '", text, "', expected processors such as '0-2,5' or a mask such as '0x27'"));
}

}  // namespace

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    facts.peak_resident_bytes = int64_t{usage.ru_maxrss} * 1024;  // Linux counts in kibibytes.
    facts.involuntary_switches = usage.ru_nivcsw;
  }
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return facts;
  long long all = 0, resident = 0;
  if (std::fscanf(file, "%lld %lld", &all, &resident) == 2) facts.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  std::fclose(file);
  return facts;
}

absl::StatusOr<std::vector<int>> ParseProcessors(absl::string_view text) {
  std::vector<int> processors;
  absl::string_view digits = text;
  if (absl::ConsumePrefix(&digits, "0x")) {
    uint64_t mask;
    if (!absl::SimpleHexAtoi(digits, &mask) || mask == 0) return BadProcessors(text);
    for (int i = 0; i < 64; ++i) {
      if (((mask >> i) & 1) != 0) processors.push_back(i);
    }
    return processors;
  }
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(piece, '-');
    int first, last;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first || last >= CPU_SETSIZE) {
      return BadProcessors(text);
    }
    for (int i = first; i <= last; ++i) processors.push_back(i);
  }
  return processors;
}

ProcessorBinding::ProcessorBinding() { CPU_ZERO(&before_); }

ProcessorBinding::~ProcessorBinding() {
  if (is_bound_) sched_setaffinity(0, sizeof(before_), &before_);
}

absl::Status ProcessorBinding::Bind(const std::vector<int>& processors) {
  if (!is_bound_ && sched_getaffinity(0, sizeof(before_), &before_) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot ask for the processors: ", std::strerror(errno)));
  }
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int processor : processors) {
    if (processor >= CPU_SETSIZE || !CPU_ISSET(processor, &before_)) {
      return absl::InvalidArgumentError(absl::StrCat("found processor ", processor, ", expected some of ",
                                                     absl::StrJoin(ProcessorsIn(before_), ", ")));
    }
    CPU_SET(processor, &wanted);
  }
  if (sched_setaffinity(0, sizeof(wanted), &wanted) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot choose processors: ", std::strerror(errno)));
  }
  is_bound_ = true;
  return absl::OkStatus();
}

}  // namespace permafrost

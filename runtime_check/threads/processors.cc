// Binds threads with the operating system's scheduler.
#include "runtime_check/threads/processors.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace permafrost {
namespace {

std::vector<int> ProcessorsIn(const cpu_set_t& set) {
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

}  // namespace

ProcessorBinding::ProcessorBinding() { CPU_ZERO(&before_); }

ProcessorBinding::~ProcessorBinding() {
  if (is_bound_) sched_setaffinity(0, sizeof(before_), &before_);
}

absl::Status ProcessorBinding::Bind(absl::Span<const int> processors) {
  if (processors.empty()) return absl::OkStatus();
  if (!is_bound_ && sched_getaffinity(0, sizeof(before_), &before_) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot ask for the processors: ", std::strerror(errno)));
  }
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int processor : processors) {
    if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET(processor, &before_)) {
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

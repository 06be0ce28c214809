// Asks the operating system for processors, and binds threads with its scheduler.
#include "runtime_check/threads/processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace permafrost {
namespace {

std::vector<int> ProcessorsIn(const cpu_set_t& set) {
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// Returns the first bytes of a file of the system, without white space at the end; "" if it cannot be read.
std::string ReadStart(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char bytes[4096];
  const ssize_t size = read(file, bytes, sizeof(bytes));
  close(file);
  std::string content(bytes, size > 0 ? static_cast<size_t>(size) : 0);
  while (!content.empty() && (content.back() == '\n' || content.back() == ' ')) content.pop_back();
  return content;
}

// Removes the part before the first `end` from the text, with the `end`, and returns it; all of the text if it has
// none.
absl::string_view TakePart(absl::string_view* text, char end) {
  const size_t size = std::min(text->find(end), text->size());
  const absl::string_view part = text->substr(0, size);
  text->remove_prefix(std::min(size + 1, text->size()));
  return part;
}

// Returns the limit that a control group sets in its files, 0 for none.
double LimitOf(const std::string& folder) {
  // Version 2 has one file with both numbers, of which the first may be "max"; version 1 has two, and -1.
  const std::string both = ReadStart(folder + "/cpu.max");
  const std::string only_quota = ReadStart(folder + "/cpu.cfs_quota_us");
  const std::string only_period = ReadStart(folder + "/cpu.cfs_period_us");
  absl::string_view period_text = both;
  absl::string_view quota_text = TakePart(&period_text, ' ');
  if (both.empty()) {
    quota_text = only_quota;
    period_text = only_period;
  }
  int64_t quota, period;
  if (!absl::SimpleAtoi(quota_text, &quota) || !absl::SimpleAtoi(period_text, &period)) return 0;
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

}  // namespace

double ProcessorLimit(const std::string& root) {
  double limit = 0;
  const auto apply = [&](const std::string& folder) {
    const double found = LimitOf(folder);
    if (found > 0 && (limit == 0 || found < limit)) limit = found;
  };
  // Lines such as "4:cpu,cpuacct:/path", or "0::/path" for version 2. The groups above limit as well. A container may
  // show its own group as the top of the tree, under a path that does not exist there.
  const std::string groups = ReadStart(root + "/proc/self/cgroup");
  for (absl::string_view rest = groups; !rest.empty();) {
    absl::string_view path = TakePart(&rest, '\n');
    const absl::string_view number = TakePart(&path, ':');
    const absl::string_view controllers = TakePart(&path, ':');
    const bool is_second_version = number == "0" && controllers.empty();
    bool has_processors = is_second_version;
    for (absl::string_view left = controllers; !left.empty();) {
      if (TakePart(&left, ',') == "cpu") has_processors = true;
    }
    if (!has_processors) continue;
    const std::string top =
        absl::StrCat(root, "/sys/fs/cgroup", is_second_version ? "" : absl::StrCat("/", controllers));
    apply(top);
    for (; path.size() > 1 && path[0] == '/'; path = path.substr(0, path.rfind('/'))) {
      apply(absl::StrCat(top, path));
    }
  }
  return limit;
}

int AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                           : static_cast<int>(std::thread::hardware_concurrency());
  const double limit = ProcessorLimit();
  if (limit > 0 && limit < count) count = static_cast<int>(limit);
  return std::max(count, 1);
}

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

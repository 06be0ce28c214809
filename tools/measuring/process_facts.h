// What the kernel says of this process: memory, switches, processors.
#ifndef PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_
#define PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

struct ProcessFacts {
  int64_t resident_bytes = 0;       // Now; 0 where the kernel does not say.
  int64_t peak_resident_bytes = 0;  // Since the process began.
  // How often the kernel took a processor away from this process for another.
  int64_t involuntary_switches = 0;
};

ProcessFacts ReadProcessFacts();

// "0-2,5", as taskset takes it, or a mask in hexadecimal digits, "0x27". InvalidArgument (found, expected).
absl::StatusOr<std::vector<int>> ParseProcessors(absl::string_view text);

// Binds this thread, and the threads that it starts, to processors while it lives.
class ProcessorBinding {
 public:
  ProcessorBinding();
  ~ProcessorBinding();
  ProcessorBinding(const ProcessorBinding&) = delete;
  ProcessorBinding& operator=(const ProcessorBinding&) = delete;

  // InvalidArgument, with those that there are, for a processor that this process may not use.
  absl::Status Bind(const std::vector<int>& processors);

 private:
  cpu_set_t before_;
  bool is_bound_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_

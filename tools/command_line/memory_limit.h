// The memory that a tool may use: the flag --max_memory of every tool.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_MEMORY_LIMIT_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_MEMORY_LIMIT_H_

#include <sys/resource.h>

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// Texts of an error about a request beyond the limit.
inline constexpr absl::string_view kOfALimit = " of a limit of ";
inline constexpr absl::string_view kRaisesLimit = "; --max_memory=BYTES raises the limit";

// Returns the bytes that new allocations can take without swapping: what the kernel estimates, or what the control
// group (a container) of this process leaves, if that is less. 4 GiB if neither is known.
uint64_t AvailableMemory();

// Returns the limit in force: that of the MemoryLimit that exists, or half of AvailableMemory().
uint64_t MemoryLimitInForce();

// Limits, while it lives, what this process allocates in addition to what it has: an allocation beyond fails as if the
// machine had no more memory. Mapped input files do not count. At most one object may exist. Where the system refuses
// the limit, only MemoryLimitInForce() reports it.
class MemoryLimit {
 public:
  // `bytes` 0: half of AvailableMemory().
  explicit MemoryLimit(uint64_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_ = {};
  bool is_set_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_MEMORY_LIMIT_H_

// Statistics of this process from the kernel: memory and context switches.
#ifndef PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_
#define PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_

#include <cstdint>

namespace permafrost {

struct ProcessFacts {
  // Current value; 0 if the kernel does not report it.
  int64_t resident_bytes = 0;
  // Peak since the start of the process.
  int64_t peak_resident_bytes = 0;
  // Number of involuntary context switches of this process.
  int64_t involuntary_switches = 0;
};

// Reads the current values.
ProcessFacts ReadProcessFacts();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_

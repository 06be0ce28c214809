// What the kernel says of this process: memory, switches.
#ifndef PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_
#define PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_

#include <cstdint>

namespace permafrost {

struct ProcessFacts {
  int64_t resident_bytes = 0;       // Now; 0 where the kernel does not say.
  int64_t peak_resident_bytes = 0;  // Since the process began.
  // How often the kernel took a processor away from this process for another.
  int64_t involuntary_switches = 0;
};

ProcessFacts ReadProcessFacts();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_PROCESS_FACTS_H_

// Measures the memory that one call allocates.
#ifndef PERMAFROST_TESTS_FUZZ_PEAK_MEMORY_H_
#define PERMAFROST_TESTS_FUZZ_PEAK_MEMORY_H_

#include <cstdint>

namespace permafrost {

// Counts from now on: the allocations by operator new of all threads.
void StartPeakMemory();

// Returns the largest number of bytes that were allocated at once since StartPeakMemory(), beyond those before it. 0
// with a sanitizer that has operators of its own.
int64_t PeakMemory();

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_PEAK_MEMORY_H_

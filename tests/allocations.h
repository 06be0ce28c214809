// Measures the memory that calls allocate, and fills new memory. Programs that link this have operators new and delete
// of their own.
#ifndef PERMAFROST_TESTS_ALLOCATIONS_H_
#define PERMAFROST_TESTS_ALLOCATIONS_H_

#include <cstdint>

namespace permafrost {

// Counts from now on: the allocations by operator new of all threads.
void StartPeakMemory();

// Returns the largest number of bytes that were allocated at once since StartPeakMemory(), beyond those before it. 0
// with a sanitizer that has operators of its own.
int64_t PeakMemory();

// Fills all later aligned allocations of the process, as those of tensors and arenas are, with `byte`, so that elements
// that a kernel does not write differ between runs with different bytes. Thread-safe.
void FillAllocations(unsigned char byte);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_ALLOCATIONS_H_

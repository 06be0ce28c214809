// Fills the memory of tensors with a byte when it is allocated, so that elements that a kernel does not write differ
// between runs with different bytes.
#ifndef PERMAFROST_TESTS_KERNELS_FILLED_MEMORY_H_
#define PERMAFROST_TESTS_KERNELS_FILLED_MEMORY_H_

namespace permafrost {

// Sets the byte for all later aligned allocations of the process, as those of tensors and arenas are. Thread-safe.
void FillAllocations(unsigned char byte);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_KERNELS_FILLED_MEMORY_H_

// Replaces the aligned operators new and delete of the program.
#include "tests/kernels/filled_memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<unsigned char> fill{0};

void* Allocate(size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(static_cast<size_t>(alignment), sizeof(void*)), size) != 0) return nullptr;
  std::memset(memory, fill.load(std::memory_order_relaxed), size);
  return memory;
}

}  // namespace

namespace permafrost {

void FillAllocations(unsigned char byte) { fill.store(byte, std::memory_order_relaxed); }

}  // namespace permafrost

void* operator new(size_t size, std::align_val_t alignment) {
  void* const memory = Allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(size, alignment);
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }

// Replaces operator new and delete by functions that count bytes and fill memory. The other forms of the operators call
// these. With a sanitizer, only the forms with an alignment are replaced, and nothing is counted.
#include "tests/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PERMAFROST_COUNTS_ALLOCATIONS 0
#else
#define PERMAFROST_COUNTS_ALLOCATIONS 1
#endif

namespace permafrost {
namespace {

std::atomic<int64_t> bytes{0}, peak{0};
std::atomic<int> fill{-1};  // -1: memory stays as it is.

void* Counted(void* memory) {
#if PERMAFROST_COUNTS_ALLOCATIONS
  if (memory == nullptr) return nullptr;
  const int64_t now = bytes += static_cast<int64_t>(malloc_usable_size(memory));
  if (now > peak) peak = now;
#endif
  return memory;
}

void* AllocateAligned(std::size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(static_cast<std::size_t>(alignment), sizeof(void*)), size) != 0) return nullptr;
  if (const int byte = fill.load(std::memory_order_relaxed); byte >= 0) std::memset(memory, byte, size);
  return Counted(memory);
}

void* OrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Free(void* memory) {
#if PERMAFROST_COUNTS_ALLOCATIONS
  bytes -= static_cast<int64_t>(malloc_usable_size(memory));
#endif
  std::free(memory);
}

}  // namespace

void StartPeakMemory() {
  bytes = 0;
  peak = 0;
}

int64_t PeakMemory() { return peak; }

void FillAllocations(unsigned char byte) { fill.store(byte, std::memory_order_relaxed); }

}  // namespace permafrost

#if PERMAFROST_COUNTS_ALLOCATIONS
void* operator new(std::size_t size) { return permafrost::OrThrow(permafrost::Counted(std::malloc(size))); }
void operator delete(void* memory) noexcept { permafrost::Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { permafrost::Free(memory); }
#endif
void* operator new(std::size_t size, std::align_val_t alignment) {
  return permafrost::OrThrow(permafrost::AllocateAligned(size, alignment));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return permafrost::AllocateAligned(size, alignment);
}
void operator delete(void* memory, std::align_val_t) noexcept { permafrost::Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { permafrost::Free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { permafrost::Free(memory); }

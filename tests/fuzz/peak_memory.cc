// Replaces operator new and delete by functions that count bytes. The other forms of the operators call these.
#include "tests/fuzz/peak_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace permafrost {
namespace {

std::atomic<int64_t> bytes{0}, peak{0};

}  // namespace

void StartPeakMemory() {
  bytes = 0;
  peak = 0;
}

int64_t PeakMemory() { return peak; }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = bytes += static_cast<int64_t>(malloc_usable_size(memory));
  if (now > peak) peak = now;
  return memory;
}

void Free(void* memory) {
  bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace
#endif

}  // namespace permafrost

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) { return permafrost::Counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return permafrost::Counted(std::aligned_alloc(unit, (size + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { permafrost::Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { permafrost::Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { permafrost::Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { permafrost::Free(memory); }
#endif

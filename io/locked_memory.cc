// Implements LockedMemory: maps, locks, wipes and unmaps pages.
#include "io/locked_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/huge_pages.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// From this size on, huge pages are requested, because large allocations are filled completely.
constexpr size_t kLarge = size_t{4} << 20;

// Locks pages when they are first touched, so that the threads that fill them share the cost.
bool Lock(void* data, size_t size) {
#ifdef MLOCK_ONFAULT
  if (mlock2(data, size, MLOCK_ONFAULT) == 0) return true;
  if (errno != ENOSYS) return false;
#endif
  return mlock(data, size) == 0;
}

// Maps `size` bytes, a multiple of the page size, aligned to `alignment`.
char* MapAligned(size_t size, size_t alignment) {
  const size_t slack = alignment > static_cast<size_t>(getpagesize()) ? alignment : 0;
  if (size > SIZE_MAX - slack) return nullptr;
  void* const mapped = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  if (slack == 0) return begin;
  const size_t skipped = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (skipped > 0) munmap(begin, skipped);
  if (slack > skipped) munmap(begin + skipped + size, slack - skipped);
  return begin + skipped;
}

}  // namespace

LockedMemory& LockedMemory::operator=(LockedMemory&& other) noexcept {
  if (this == &other) return *this;
  Release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  is_locked_ = std::exchange(other.is_locked_, true);
  return *this;
}

absl::StatusOr<LockedMemory> LockedMemory::Allocate(size_t size) {
  LockedMemory memory;
  if (size == 0) return memory;
  const size_t page = static_cast<size_t>(getpagesize());
  const auto failure = [size] {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", size, " bytes of locked memory"));
  };
  if (size > SIZE_MAX - page) return failure();
  memory.mapped_ = (size + page - 1) / page * page;
  memory.data_ = MapAligned(memory.mapped_, size >= kLarge ? kHugePageBytes : page);
  if (memory.data_ == nullptr) {
    memory.mapped_ = 0;
    return failure();
  }
  memory.size_ = size;
  // Both calls are hints: a kernel without huge pages or core dumps rejects them without harm.
  if (size >= kLarge) PreferHugePages(memory.data_, memory.mapped_);
  (void)madvise(memory.data_, memory.mapped_, MADV_DONTDUMP);
  memory.is_locked_ = Lock(memory.data_, memory.mapped_);
  return memory;
}

absl::StatusOr<LockedMemory> LockedMemory::CopyOf(absl::string_view bytes) {
  PF_ASSIGN_OR_RETURN(LockedMemory memory, Allocate(bytes.size()));
  if (!bytes.empty()) memcpy(memory.data(), bytes.data(), bytes.size());
  return memory;
}

void LockedMemory::Release() {
  if (data_ == nullptr) return;
  Wipe(data_, size_);
  munmap(data_, mapped_);  // Also unlocks the pages.
  data_ = nullptr;
}

void Wipe(void* bytes, size_t size) {
  if (size > 0) explicit_bzero(bytes, size);
}

}  // namespace permafrost

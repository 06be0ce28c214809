// Memory for what must not be left behind: keys, and models that were encrypted.
#ifndef PERMAFROST_IO_LOCKED_MEMORY_H_
#define PERMAFROST_IO_LOCKED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Pages of their own that are kept out of swap and core dumps, and overwritten before they are given back. The kernel
// limits how much a process may keep out of swap (ulimit -l); beyond that is_locked() is false and the rest still
// holds. Movable; the bytes stay where they are.
class LockedMemory {
 public:
  LockedMemory() = default;  // No bytes.
  ~LockedMemory() { Release(); }
  LockedMemory(LockedMemory&& other) noexcept { *this = std::move(other); }
  LockedMemory& operator=(LockedMemory&& other) noexcept;
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;

  // `size` zero bytes. ResourceExhausted: there is not so much memory.
  static absl::StatusOr<LockedMemory> Allocate(size_t size);
  static absl::StatusOr<LockedMemory> CopyOf(absl::string_view bytes);

  char* data() { return data_; }
  absl::string_view bytes() const { return absl::string_view(data_, size_); }
  size_t size() const { return size_; }
  bool is_locked() const { return is_locked_; }

 private:
  void Release();

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // Bytes, whole pages.
  bool is_locked_ = true;
};

// Overwrites `size` bytes, in a way that no compiler leaves out.
void Wipe(void* bytes, size_t size);

}  // namespace permafrost

#endif  // PERMAFROST_IO_LOCKED_MEMORY_H_

// Memory for secrets: keys and decrypted models.
#ifndef PERMAFROST_IO_LOCKED_MEMORY_H_
#define PERMAFROST_IO_LOCKED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Private pages that are excluded from swap and core dumps and are overwritten before they are freed. The kernel limits
// how much memory a process can lock (ulimit -l). Beyond the limit is_locked() is false; the other guarantees still
// hold. Movable; moving does not change the address of the bytes.
class LockedMemory {
 public:
  LockedMemory() = default;  // No bytes.
  ~LockedMemory() { Release(); }
  LockedMemory(LockedMemory&& other) noexcept { *this = std::move(other); }
  LockedMemory& operator=(LockedMemory&& other) noexcept;
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;

  // Allocates `size` zero bytes. Returns ResourceExhausted if there is not enough memory.
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
  size_t mapped_ = 0;  // In bytes; a multiple of the page size.
  bool is_locked_ = true;
};

// Overwrites `size` bytes in a way that compilers do not optimise away.
void Wipe(void* bytes, size_t size);

}  // namespace permafrost

#endif  // PERMAFROST_IO_LOCKED_MEMORY_H_

// A buffer for the content of a compressed model, of bounded size.
#ifndef PERMAFROST_IO_FORMATS_DECOMPRESSED_BYTES_H_
#define PERMAFROST_IO_FORMATS_DECOMPRESSED_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "io/locked_memory.h"
#include "io/model_format.h"

namespace permafrost {

// Grows with the data found, up to OpenOptions::max_model_bytes. While that has its default, a model may also not be
// larger than kMostExpansion times its compressed form, or kFreeBytes, whichever is more: weights that are numbers take
// at least a byte in a hundred, and a small file could otherwise fill the memory of the machine. Unused capacity only
// takes address space, and large blocks grow by remapping pages; both are properties of the C library. Decrypted data
// are kept in LockedMemory, which grows by copying. A decompressor writes up to room() bytes at end() and then calls
// Grow.
class DecompressedBytes {
 public:
  static constexpr uint64_t kMostExpansion = 1000;
  static constexpr uint64_t kFreeBytes = uint64_t{1} << 30;

  // `options` must outlive this object.
  DecompressedBytes(bool is_secret, uint64_t compressed_size, const OpenOptions& options);
  DecompressedBytes(const DecompressedBytes&) = delete;
  DecompressedBytes& operator=(const DecompressedBytes&) = delete;
  ~DecompressedBytes();

  size_t size() const { return size_; }
  size_t room() const { return capacity_ - size_; }
  char* end() { return data_ + size_; }

  // Returns ResourceExhausted if `declared` more bytes exceed the limit.
  absl::Status CheckDeclared(uint64_t declared) const;
  // Allocates memory for `capacity` bytes in total. ResourceExhausted if there is not enough.
  absl::Status Reserve(uint64_t capacity);
  // Allocates more memory if there is no room. Same errors.
  absl::Status MakeRoom();
  // Adds the bytes written at end(). ResourceExhausted if they exceed the limit.
  absl::Status Grow(size_t bytes);

  // Returns the bytes and releases unused capacity. ResourceExhausted, or a note, if secret bytes cannot be locked in
  // memory: see OpenOptions::require_locked_memory.
  absl::StatusOr<FileView> Release();

 private:
  absl::Status CheckLocked() const;

  const bool is_secret_;
  const OpenOptions& options_;
  const uint64_t most_;
  char* data_ = nullptr;  // Address of the bytes in either kind of memory.
  char* open_ = nullptr;  // From malloc.
  LockedMemory locked_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_DECOMPRESSED_BYTES_H_

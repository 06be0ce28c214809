// Bytes with random access: a mapped file, or the content of a compressed or encrypted file.
#ifndef PERMAFROST_IO_BYTE_SOURCE_H_
#define PERMAFROST_IO_BYTE_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file_system.h"

namespace permafrost {

// A sequence of bytes of known size. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Total size in bytes.
  virtual uint64_t size() const = 0;

  // Returns `length` bytes from `offset`: a view if the source holds them in memory, otherwise a copy owned by the
  // result. Returns OutOfRange if they end beyond size(), or an error of the underlying source.
  virtual absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const = 0;

  // True for decrypted bytes. Copies of them must be kept in LockedMemory.
  virtual bool is_secret() const { return false; }

 protected:
  // Returns OutOfRange if the range ends beyond size().
  absl::Status CheckRange(uint64_t offset, uint64_t length) const;
};

// Returns a source of the bytes of `view`. The source and each piece read from it keep the view's owner alive.
// `is_secret` becomes the source's is_secret().
std::shared_ptr<const ByteSource> MemorySource(FileView view, bool is_secret = false);

// Reads all bytes of the source.
absl::StatusOr<FileView> ReadAll(const ByteSource& source);

}  // namespace permafrost

#endif  // PERMAFROST_IO_BYTE_SOURCE_H_

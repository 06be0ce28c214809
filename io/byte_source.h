// Bytes that are read piece by piece: a mapped file, or what a compressed or encrypted one holds.
#ifndef PERMAFROST_IO_BYTE_SOURCE_H_
#define PERMAFROST_IO_BYTE_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file_system.h"

namespace permafrost {

// Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Bytes in all.
  virtual uint64_t size() const = 0;

  // `length` bytes from `offset` on: a view where the source has them in memory, otherwise a copy of their own, which
  // the view's owner holds. OutOfRange: they end beyond size(); other errors are those of the source.
  virtual absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const = 0;

  // True for what was encrypted: whoever keeps more of it than a view puts it into LockedMemory.
  virtual bool is_secret() const { return false; }

 protected:
  // OutOfRange when the bytes end beyond size().
  absl::Status CheckRange(uint64_t offset, uint64_t length) const;
};

// The bytes of `view`, which the source keeps alive, and so does each piece that was read. `is_secret` is what the
// source says of itself.
std::shared_ptr<const ByteSource> MemorySource(FileView view, bool is_secret = false);

// All of the source.
absl::StatusOr<FileView> ReadAll(const ByteSource& source);

}  // namespace permafrost

#endif  // PERMAFROST_IO_BYTE_SOURCE_H_

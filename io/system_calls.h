// The kernel calls through which PosixFileSystem reads and writes, one by one, so that a test can make any of them
// fail.
#ifndef PERMAFROST_IO_SYSTEM_CALLS_H_
#define PERMAFROST_IO_SYSTEM_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace permafrost {

// Each has the meaning, result and errno of the call that it is named after.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  virtual int Open(const char* path, int flags, mode_t mode);
  virtual ssize_t Read(int file, void* buffer, size_t size);
  virtual void* Map(int file, size_t size);  // mmap, for reading, private.
  virtual ssize_t Write(int file, const void* bytes, size_t size);
  // fallocate from 0, without changing the file's size; of a file in memory only whether there is room.
  virtual int Allocate(int file, uint64_t size);
  // fallocate of a file in memory, without changing the file's size; ENOTSUP for any other.
  virtual int AllocateInMemory(int file, uint64_t offset, uint64_t size);
  virtual int Sync(int file);                    // fsync
  virtual int Link(int file, const char* path);  // linkat of a file that was opened with O_TMPFILE.
  virtual int Rename(const char* from, const char* to);
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_SYSTEM_CALLS_H_

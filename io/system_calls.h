// The system calls of PosixFileSystem, as virtual functions so that tests can make any of them fail.
#ifndef PERMAFROST_IO_SYSTEM_CALLS_H_
#define PERMAFROST_IO_SYSTEM_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace permafrost {

// Each function has the semantics, result and errno of the call in its name.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  virtual int Open(const char* path, int flags, mode_t mode);
  virtual ssize_t Read(int file, void* buffer, size_t size);
  virtual void* Map(int file, size_t size);  // mmap, read-only and private.
  virtual ssize_t Write(int file, const void* bytes, size_t size);
  // Calls fallocate from offset 0 without changing the file's size. For a file in memory it only checks that there is
  // room.
  virtual int Allocate(int file, uint64_t size);
  // Calls fallocate for a file in memory without changing the file's size. Returns ENOTSUP for any other file.
  virtual int AllocateInMemory(int file, uint64_t offset, uint64_t size);
  virtual int Sync(int file);                    // fsync
  virtual int Link(int file, const char* path);  // linkat of a file opened with O_TMPFILE.
  virtual int Rename(const char* from, const char* to);
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_SYSTEM_CALLS_H_

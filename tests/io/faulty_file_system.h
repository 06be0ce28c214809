// A file system whose calls fail on demand, for tests of readers and writers.
#ifndef PERMAFROST_TESTS_IO_FAULTY_FILE_SYSTEM_H_
#define PERMAFROST_TESTS_IO_FAULTY_FILE_SYSTEM_H_

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "io/posix_file_system.h"

namespace permafrost {

enum class Fault { kNone, kOpen, kOpenUnnamed, kRead, kMap, kWrite, kAllocate, kSync, kLink, kRename };

// The system calls, with one injected fault and an optional limit on disk space.
class FaultyCalls : public SystemCalls {
 public:
  // Makes call number `nth` (from 0) of that kind and every later one fail with `error_number`.
  void Fail(Fault fault, int nth, int error_number) {
    fault_ = fault;
    left_ = nth;
    error_number_ = error_number;
  }
  // Makes the disk full after this many bytes.
  void LimitDisk(uint64_t bytes) { room_ = bytes; }
  // Limits the size of each write.
  void ShortenWrites(size_t bytes) { most_ = bytes; }
  // True if the injected fault has occurred.
  bool has_failed() const { return has_failed_; }

  int Open(const char* path, int flags, mode_t mode) override {
    if ((flags & O_TMPFILE) == O_TMPFILE && Fails(Fault::kOpenUnnamed)) return -1;
    return Fails(Fault::kOpen) ? -1 : SystemCalls::Open(path, flags, mode);
  }
  ssize_t Read(int file, void* buffer, size_t size) override {
    return Fails(Fault::kRead) ? -1 : SystemCalls::Read(file, buffer, size);
  }
  void* Map(int file, size_t size) override { return Fails(Fault::kMap) ? MAP_FAILED : SystemCalls::Map(file, size); }
  ssize_t Write(int file, const void* bytes, size_t size) override {
    if (Fails(Fault::kWrite)) return -1;
    if (room_ == 0) {
      errno = ENOSPC;
      return -1;
    }
    if (size > most_) size = most_;
    if (size > room_) size = static_cast<size_t>(room_);
    const ssize_t count = SystemCalls::Write(file, bytes, size);
    if (count > 0) room_ -= static_cast<uint64_t>(count);
    return count;
  }
  int Allocate(int file, uint64_t size) override {
    return Fails(Fault::kAllocate) ? -1 : SystemCalls::Allocate(file, size);
  }
  int Sync(int file) override { return Fails(Fault::kSync) ? -1 : SystemCalls::Sync(file); }
  int Link(int file, const char* path) override { return Fails(Fault::kLink) ? -1 : SystemCalls::Link(file, path); }
  int Rename(const char* from, const char* to) override {
    return Fails(Fault::kRename) ? -1 : SystemCalls::Rename(from, to);
  }

 private:
  bool Fails(Fault call) {
    if (call != fault_ || left_-- > 0) return false;
    errno = error_number_;
    has_failed_ = true;
    return true;
  }

  Fault fault_ = Fault::kNone;
  int left_ = 0;
  int error_number_ = 0;
  uint64_t room_ = std::numeric_limits<uint64_t>::max();
  size_t most_ = std::numeric_limits<size_t>::max();
  bool has_failed_ = false;
};

// The real file system with faulty system calls.
class FaultyFileSystem : public PosixFileSystem {
 public:
  FaultyFileSystem() : PosixFileSystem(&calls_) {}
  FaultyCalls& calls() { return calls_; }

 private:
  FaultyCalls calls_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_IO_FAULTY_FILE_SYSTEM_H_

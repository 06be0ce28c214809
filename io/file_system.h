// Interface to the file system. Passed as an argument, so that tests can make any read or write fail.
//
// Paths are those of the kernel, except that a leading "~" or "~user" is replaced by a home directory. Errors name the
// path and the reason: `cannot open 'model.pb': No such file or directory`.
#ifndef PERMAFROST_IO_FILE_SYSTEM_H_
#define PERMAFROST_IO_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/tensor.h"

namespace permafrost {

// The bytes of a file, valid as long as `owner` (or a copy of it) exists. If the file is mapped and another program
// truncates it, accesses beyond the new end terminate this process (SIGBUS). Only a copy of the file would avoid that.
struct FileView {
  absl::string_view bytes;
  Owner owner;
};

struct FileStat {
  uint64_t size = 0;  // In bytes; 0 unless it is a regular file.
  bool is_directory = false;
  bool is_regular = false;  // Neither a directory nor a device nor a pipe.
};

// Writes one file. An existing file stays unchanged until Commit succeeds. Not thread-safe.
class FileWriter : public ByteSink {
 public:
  // Reserves `size` bytes in total on the disk, so that a full disk (ResourceExhausted) is detected before any work.
  virtual absl::Status Reserve(uint64_t /*size*/) { return absl::OkStatus(); }
  // Hints that up to `size` bytes will be written later. If the file is in memory, a background thread allocates its
  // pages until the first Append. Reports no errors; surplus space is released.
  virtual void ReserveAhead(uint64_t /*size*/) {}
  // Makes the output visible under its name, complete and synced to the disk. Without a successful Commit the
  // destructor removes everything written. REQUIRES: called at most once, and no Append has failed.
  virtual absl::Status Commit() = 0;
};

// A file system. Thread-safe. Errors: NotFound (no such file), PermissionDenied, ResourceExhausted (disk or memory is
// full), InvalidArgument (a directory where a file is expected, or the reverse), Unavailable (the device failed).
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Returns a view of the whole file, which stays unchanged when a writer later replaces the file. Inherited pipes are
  // read to their end, at most kMaxStreamBytes. InvalidArgument for named pipes, which may block, and devices.
  virtual absl::StatusOr<FileView> MapFile(const std::string& path) = 0;
  // Returns a copy of the whole file.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;

  // Opens `path` for writing. If it is a symbolic link, its target is replaced. An existing file keeps its permissions.
  // Pipes and devices are written directly. Reserves `expected_size` bytes unless it is 0 (unknown). Where the file
  // system supports it, the new file has no name until Commit, so that nothing is left behind even if the process is
  // killed.
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path,
                                                                uint64_t expected_size = 0) = 0;

  // Creates a file that only its owner can read or write, synced to the disk on return. Returns AlreadyExists, without
  // changes, if the file exists.
  virtual absl::Status WritePrivateFile(const std::string& path, absl::string_view bytes) = 0;

  virtual absl::StatusOr<FileStat> Stat(const std::string& path) = 0;
  // False also if it cannot be determined.
  virtual bool Exists(const std::string& path) = 0;
  // True if both paths exist and refer to the same file.
  virtual bool IsSameFile(const std::string& a, const std::string& b) = 0;
  // Returns the names in a directory, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // Creates a directory; its parent must exist. Returns OK if it exists already.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
};

// Maximum number of bytes read from a pipe: the size limit of a GraphDef (2 GiB).
inline constexpr uint64_t kMaxStreamBytes = uint64_t{1} << 31;

// Returns the file system of the machine. Lives as long as the process.
FileSystem& RealFileSystem();

// Replaces the prefix "~" or "~user" by the home directory. Returns other paths, and those with unknown users,
// unchanged.
std::string ExpandHome(absl::string_view path);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FILE_SYSTEM_H_

// The file system as an argument, so that tests can fail any read or write.
//
// Paths are those of the kernel, except that a leading "~" or "~user" stands for a home folder. Errors name the path
// and the reason: `cannot open 'model.pb': No such file or directory`.
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

// The bytes of a file, valid as long as `owner` (or a copy of it) lives. When they are mapped, another program that
// cuts the file short while they are in use stops this one: there is no portable way round that but to copy.
struct FileView {
  absl::string_view bytes;
  Owner owner;
};

struct FileStat {
  uint64_t size = 0;  // Bytes; 0 for what is not a regular file.
  bool is_directory = false;
  bool is_regular = false;  // Neither folder nor device nor pipe.
};

// Writes one file. What it replaces stays as it was until Commit succeeds. Not thread-safe.
class FileWriter : public ByteSink {
 public:
  // Sets `size` bytes in all aside on the disk, so that a full disk (ResourceExhausted) shows before any work is done.
  virtual absl::Status Reserve(uint64_t /*size*/) { return absl::OkStatus(); }
  // For a file that is opened well before there is something to write, and may have `size` bytes then: where files lie
  // in memory, a thread makes its pages until the first Append. Only a hint: nothing fails, and what is too much is
  // given back.
  virtual void ReserveAhead(uint64_t /*size*/) {}
  // The output appears under its name, complete and on the disk. Without a Commit that succeeds, the destructor removes
  // what was written so far. REQUIRES: called at most once, after no failed Append.
  virtual absl::Status Commit() = 0;
};

// Thread-safe. NotFound: there is no such file; PermissionDenied; ResourceExhausted: disk or memory is full;
// InvalidArgument: a folder where a file belongs, or the reverse; Unavailable: the device failed.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A view of the whole file, which stays as it is when a writer later replaces the file. Pipes and devices are read to
  // their end, at most kMaxStreamBytes.
  virtual absl::StatusOr<FileView> MapFile(const std::string& path) = 0;
  // A copy of the whole file.
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;

  // Opens `path` for writing. Through a symbolic link the file that it names is replaced, and an existing file keeps
  // its permissions. Pipes and devices are written to directly. `expected_size`, 0 when not known, is reserved. Until
  // Commit the new file has no name where the file system allows that, so that even a process that is killed leaves
  // nothing behind.
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path,
                                                                uint64_t expected_size = 0) = 0;

  // Makes a file that only its owner may read or write, on the disk when this returns. AlreadyExists: there is one of
  // this name, which is left alone.
  virtual absl::Status WritePrivateFile(const std::string& path, absl::string_view bytes) = 0;

  virtual absl::StatusOr<FileStat> Stat(const std::string& path) = 0;
  // False also when it cannot be told.
  virtual bool Exists(const std::string& path) = 0;
  // True when both exist and are one file, by whatever names.
  virtual bool IsSameFile(const std::string& a, const std::string& b) = 0;
  // The names in a folder, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // A folder; its parent must exist. OK when it is there already.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
};

// What a pipe may deliver before it is refused: as much as a GraphDef can hold (2 GiB).
inline constexpr uint64_t kMaxStreamBytes = uint64_t{1} << 31;

// The real one. Lives as long as the process.
FileSystem& RealFileSystem();

// "~/x" and "~user/x" with the home folder in place; other paths, and unknown users, unchanged.
std::string ExpandHome(absl::string_view path);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FILE_SYSTEM_H_

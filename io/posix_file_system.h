// The file system of a POSIX machine. Most code uses RealFileSystem() of io/file_system.h; this header is for tests
// that replace system calls.
#ifndef PERMAFROST_IO_POSIX_FILE_SYSTEM_H_
#define PERMAFROST_IO_POSIX_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "io/checked_files.h"
#include "io/file_system.h"
#include "io/system_calls.h"

namespace permafrost {

class PosixFileSystem : public FileSystem, public CheckedFiles {
 public:
  // Does not own `calls`, which must be thread-safe if several threads use the file system.
  explicit PosixFileSystem(SystemCalls* calls) : calls_(calls) {}

  absl::StatusOr<FileView> MapFile(const std::string& path) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path, uint64_t expected_size) override;
  absl::Status WritePrivateFile(const std::string& path, absl::string_view bytes) override;
  absl::StatusOr<FileStat> Stat(const std::string& path) override;
  bool Exists(const std::string& path) override;
  bool IsSameFile(const std::string& a, const std::string& b) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::StatusOr<FileView> MapFileIn(const std::string& folder, const std::string& name) override;
  absl::StatusOr<FileView> MapOwnFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileWriter>> NewOwnWriter(const std::string& path, uint64_t expected_size) override;

 private:
  SystemCalls* calls_;
};

// Returns the path under /proc that refers to an open file of this process.
std::string OpenFilePath(int file);

// Implements WritePrivateFile. `path` has its home directory expanded.
absl::Status MakePrivateFile(SystemCalls* calls, const std::string& path, absl::string_view bytes);

// How a writer treats a symbolic link.
enum class Links { kFollow, kReplace };

// Implements NewWriter and NewOwnWriter. `path` has its home directory expanded.
absl::StatusOr<std::unique_ptr<FileWriter>> OpenPosixWriter(SystemCalls* calls, const std::string& path, Links links,
                                                            uint64_t expected_size);

}  // namespace permafrost

#endif  // PERMAFROST_IO_POSIX_FILE_SYSTEM_H_

// The file system of the machine. Most code wants RealFileSystem() of io/file_system.h; this header is for tests that
// replace the kernel's calls.
#ifndef PERMAFROST_IO_POSIX_FILE_SYSTEM_H_
#define PERMAFROST_IO_POSIX_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "io/system_calls.h"

namespace permafrost {

class PosixFileSystem : public FileSystem {
 public:
  // Does not own `calls`, which must be thread-safe if the file system is used by several threads.
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

 private:
  SystemCalls* calls_;
};

// The path by which the kernel knows an open file of this process, where /proc is mounted.
std::string OpenFilePath(int file);

// What WritePrivateFile describes. `path` has its home folder in place.
absl::Status MakePrivateFile(SystemCalls* calls, const std::string& path, absl::string_view bytes);

// Opens the writer that NewWriter describes. `path` has its home folder in place.
absl::StatusOr<std::unique_ptr<FileWriter>> OpenPosixWriter(SystemCalls* calls, const std::string& path,
                                                            uint64_t expected_size);

}  // namespace permafrost

#endif  // PERMAFROST_IO_POSIX_FILE_SYSTEM_H_

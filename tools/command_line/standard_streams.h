// A file system in which the path "-" is standard input or standard output.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_STANDARD_STREAMS_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_STANDARD_STREAMS_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "io/checked_files.h"
#include "io/file_system.h"

namespace permafrost {

// The path of standard input for a file that is read, and of standard output for one that is written.
inline constexpr absl::string_view kStandardStream = "-";

// Passes all paths but "-" to another file system. Thread-safe.
//
// Standard input and inherited pipes (/dev/fd/63, as <(command) in a shell) are read to their end once and kept, at
// most kMaxStreamBytes each, so that they can be read again. What is written to "-" is kept in memory until Commit, so
// that standard output receives a whole file or nothing.
class StandardStreamFiles : public FileSystem, public CheckedFiles {
 public:
  // Does not own `files` and `out`.
  StandardStreamFiles(FileSystem& files, std::ostream& out) : files_(files), out_(out) {}

  absl::StatusOr<FileView> MapFile(const std::string& path) override;
  absl::StatusOr<FileView> MapFileIn(const std::string& folder, const std::string& name) override;
  absl::StatusOr<FileView> MapOwnFile(const std::string& path) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path, uint64_t expected_size) override;
  absl::StatusOr<std::unique_ptr<FileWriter>> NewOwnWriter(const std::string& path, uint64_t expected_size) override;
  // InvalidArgument for "-".
  absl::Status WritePrivateFile(const std::string& path, absl::string_view bytes) override;
  // The size of "-" is that of standard input if it was read already, otherwise 0.
  absl::StatusOr<FileStat> Stat(const std::string& path) override;
  bool Exists(const std::string& path) override;
  bool IsSameFile(const std::string& a, const std::string& b) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;

 private:
  FileSystem& files_;
  std::ostream& out_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<FileView> input_;
  std::map<std::string, FileView> pipes_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_STANDARD_STREAMS_H_

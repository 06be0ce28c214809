// Finds out whether a file system checks links.
#include "io/checked_files.h"

namespace permafrost {

absl::StatusOr<FileView> MapFileIn(FileSystem& files, const std::string& folder, const std::string& name) {
  auto* checked = dynamic_cast<CheckedFiles*>(&files);
  return checked == nullptr ? files.MapFile(folder + name) : checked->MapFileIn(folder, name);
}

absl::StatusOr<FileView> MapOwnFile(FileSystem& files, const std::string& path) {
  auto* checked = dynamic_cast<CheckedFiles*>(&files);
  return checked == nullptr ? files.MapFile(path) : checked->MapOwnFile(path);
}

absl::StatusOr<std::unique_ptr<FileWriter>> NewOwnWriter(FileSystem& files, const std::string& path,
                                                         uint64_t expected_size) {
  auto* checked = dynamic_cast<CheckedFiles*>(&files);
  return checked == nullptr ? files.NewWriter(path, expected_size) : checked->NewOwnWriter(path, expected_size);
}

}  // namespace permafrost

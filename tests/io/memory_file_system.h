// A file system in memory, for tests that damage files in many ways.
#ifndef PERMAFROST_TESTS_IO_MEMORY_FILE_SYSTEM_H_
#define PERMAFROST_TESTS_IO_MEMORY_FILE_SYSTEM_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/file_system.h"

namespace permafrost {

// Folders exist if files are in them; "." contains names without a folder. Read-only.
class MemoryFileSystem : public FileSystem {
 public:
  explicit MemoryFileSystem(std::map<std::string, std::string> files = {}) : files_(std::move(files)) {}

  std::map<std::string, std::string>& files() { return files_; }

  absl::StatusOr<FileView> MapFile(const std::string& path) override {
    absl::StatusOr<std::string> bytes = ReadFile(path);
    if (!bytes.ok()) return bytes.status();
    auto kept = std::make_shared<const std::string>(*std::move(bytes));
    return FileView{*kept, kept};
  }
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    const auto file = files_.find(path);
    if (file == files_.end()) return Missing(path);
    return file->second;
  }
  absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path, uint64_t /*expected_size*/) override {
    return absl::PermissionDeniedError(absl::StrCat("cannot write '", path, "'"));
  }
  absl::Status WritePrivateFile(const std::string& path, absl::string_view /*bytes*/) override {
    return absl::PermissionDeniedError(absl::StrCat("cannot write '", path, "'"));
  }
  absl::StatusOr<FileStat> Stat(const std::string& path) override {
    const auto file = files_.find(path);
    if (file != files_.end()) return FileStat{file->second.size(), false, true};
    if (ListDirectory(path).ok()) return FileStat{0, true, false};
    return Missing(path);
  }
  bool Exists(const std::string& path) override { return Stat(path).ok(); }
  bool IsSameFile(const std::string& a, const std::string& b) override { return a == b && Exists(a); }
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    const std::string prefix = path == "." ? "" : absl::StrCat(path, absl::EndsWith(path, "/") ? "" : "/");
    std::set<std::string> names;
    for (const auto& [name, bytes] : files_) {
      if (!absl::StartsWith(name, prefix)) continue;
      const std::string rest = name.substr(prefix.size());
      names.insert(rest.substr(0, rest.find('/')));
    }
    if (names.empty()) return Missing(path);
    return std::vector<std::string>(names.begin(), names.end());
  }
  absl::Status MakeDirectory(const std::string& path) override {
    return absl::PermissionDeniedError(absl::StrCat("cannot make '", path, "'"));
  }

 private:
  static absl::Status Missing(const std::string& path) {
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "': No such file or directory"));
  }

  std::map<std::string, std::string> files_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_IO_MEMORY_FILE_SYSTEM_H_

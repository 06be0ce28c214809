// Opens files that the user did not name: parts of a model, and files of a cache. An archive or another user may have
// put a symbolic link in their place.
#ifndef PERMAFROST_IO_CHECKED_FILES_H_
#define PERMAFROST_IO_CHECKED_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

// Operations of a file system that has symbolic links. Thread-safe.
class CheckedFiles {
 public:
  virtual ~CheckedFiles() = default;
  virtual absl::StatusOr<FileView> MapFileIn(const std::string& folder, const std::string& name) = 0;
  virtual absl::StatusOr<FileView> MapOwnFile(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> NewOwnWriter(const std::string& path, uint64_t expected_size) = 0;
};

// The functions below fall back to those of FileSystem if `files` is no CheckedFiles: it then has no links.

// Maps a file that a model names: `name` is a path relative to `folder`, which is empty or ends with '/'. Errors are
// those of FileSystem::MapFile; PermissionDenied if `name` leads out of the folder by a symbolic link. Two kinds of
// links are exempt: those to a file that has the same name in a folder of the same name, because build systems link
// whole models so, and those into the content-addressed cache that the folder is a part of (Hugging Face, DVC,
// git-annex).
absl::StatusOr<FileView> MapFileIn(FileSystem& files, const std::string& folder, const std::string& name);

// Returns the resolved paths of the files outside of `folder` that MapFileIn reads through links in it, without those
// of very large folders. Errors are ignored, since opening such a file reports them.
std::vector<std::string> LinkedFilesOf(const std::string& folder);

// Maps a file that this program wrote: a part of a cache. PermissionDenied if the last component of `path` is a
// symbolic link, or if another user than root owns the file, or every user may write it.
absl::StatusOr<FileView> MapOwnFile(FileSystem& files, const std::string& path);

// Opens a file that MapOwnFile reads for writing, as FileSystem::NewWriter does, but replaces a symbolic link and
// leaves its target unchanged. InvalidArgument if `path` is neither a regular file nor a link.
absl::StatusOr<std::unique_ptr<FileWriter>> NewOwnWriter(FileSystem& files, const std::string& path,
                                                         uint64_t expected_size = 0);

// The names of temporary files of writers start and end so. Readers ignore such files, and the next writer into their
// folder removes those that a killed process left.
inline constexpr absl::string_view kTemporaryPrefix = ".permafrost-";
inline constexpr absl::string_view kTemporarySuffix = ".tmp";

}  // namespace permafrost

#endif  // PERMAFROST_IO_CHECKED_FILES_H_

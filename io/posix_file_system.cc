// Implements reading and querying of files on POSIX systems.
#include "io/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/huge_pages.h"
#include "graph/base/status.h"
#include "io/checked_files.h"
#include "io/mapped_pages.h"
#include "io/system_error.h"

namespace permafrost {

std::string OpenFilePath(int file) { return absl::StrCat("/proc/self/fd/", file); }

int SystemCalls::Open(const char* path, int flags, mode_t mode) { return open(path, flags | O_CLOEXEC, mode); }
ssize_t SystemCalls::Read(int file, void* buffer, size_t size) { return read(file, buffer, size); }
void* SystemCalls::Map(int file, size_t size) { return mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0); }
ssize_t SystemCalls::Write(int file, const void* bytes, size_t size) { return write(file, bytes, size); }
int SystemCalls::Allocate(int file, uint64_t size) {
  struct statfs system;
  struct stat about;
  if (fstatfs(file, &system) == 0 && system.f_type == TMPFS_MAGIC && fstat(file, &about) == 0) {
    // In a memory file system, allocation would create all pages now and look them up again later. It suffices to check
    // that there is room in addition to the file's own pages. A system without a limit reports zero blocks.
    constexpr uint64_t kStatBlock = 512;
    const uint64_t room = static_cast<uint64_t>(system.f_bavail) * static_cast<uint64_t>(system.f_bsize) +
                          static_cast<uint64_t>(about.st_blocks) * kStatBlock;
    if (system.f_blocks == 0 || room >= size) return 0;
    errno = ENOSPC;
    return -1;
  }
  return fallocate(file, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size));
}
int SystemCalls::AllocateInMemory(int file, uint64_t offset, uint64_t size) {
  struct statfs system;
  if (fstatfs(file, &system) == 0 && system.f_type == TMPFS_MAGIC) {
    return fallocate(file, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size));
  }
  errno = ENOTSUP;
  return -1;
}
int SystemCalls::Link(int file, const char* path) {
  // AT_EMPTY_PATH would work without /proc, but requires privileges.
  return linkat(AT_FDCWD, OpenFilePath(file).c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}
int SystemCalls::Sync(int file) { return fsync(file); }
int SystemCalls::Rename(const char* from, const char* to) { return rename(from, to); }

namespace {

// Returns the path of an open file, or what it is: "pipe:[123]". Empty if that is not known.
std::string ResolvedPath(int file) {
  char path[PATH_MAX];
  const ssize_t size = readlink(OpenFilePath(file).c_str(), path, sizeof(path));
  return size <= 0 ? "" : std::string(path, static_cast<size_t>(size));
}

// Checks the kind of an open file, and removes O_NONBLOCK, with which it was opened so that a named pipe cannot block.
absl::Status CheckReadable(int file, const std::string& path, struct stat* about) {
  if (fstat(file, about) != 0) return SystemError("open", path, errno);
  if (S_ISREG(about->st_mode)) return absl::OkStatus();
  if (S_ISDIR(about->st_mode)) return SystemError("open", path, EISDIR);
  const std::string resolved = ResolvedPath(file);
  const bool is_inherited = (S_ISFIFO(about->st_mode) && absl::StartsWith(resolved, "pipe:")) || path == "/dev/stdin" ||
                            resolved == "/dev/null";
  if (!is_inherited) {
    return absl::InvalidArgumentError(absl::StrCat("cannot open '", path, "': it is a ",
                                                   S_ISFIFO(about->st_mode) ? "named pipe" : "device",
                                                   ", expected a regular file, or '-' for standard input"));
  }
  const int flags = fcntl(file, F_GETFL);
  if (flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) != 0) return SystemError("open", path, errno);
  return absl::OkStatus();
}

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

// Opens a file for reading and returns its attributes. The caller closes it.
absl::StatusOr<int> OpenToRead(SystemCalls* calls, const std::string& path, int more_flags, struct stat* about) {
  if (path.empty()) return absl::InvalidArgumentError("cannot open '': the path is empty");
  int file;
  do {
    file = calls->Open(path.c_str(), kReadFlags | more_flags, 0);
  } while (file < 0 && errno == EINTR);
  if (file < 0) return SystemError("open", path, errno);
  absl::Status status = CheckReadable(file, path, about);
  if (status.ok()) return file;
  close(file);
  return status;
}

// Returns whether `name` is the hash of a content, as caches name their files: it contains 30 hexadecimal digits in a
// row. MD5, the shortest of the hashes in use, has 32, of which the first two may name a folder.
bool IsContentHash(absl::string_view name) {
  constexpr size_t kMinDigits = 30;
  size_t digits = 0;
  for (const char c : name) {
    digits = absl::ascii_isxdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0;
    if (digits == kMinDigits) return true;
  }
  return false;
}

// Returns the folders in which the content-addressed cache that `folder` is a part of may keep its files. Such caches
// keep each file once, under the hash of its content, and make folders of links to them. `folder` is a resolved path.
std::vector<std::string> StoresOf(absl::string_view folder) {
  struct Layout {
    const char* models;  // Where the folders of links are, below the root of the cache.
    const char* store;   // Where the files are, below the same root.
  };
  constexpr Layout kLayouts[] = {
      {"/snapshots/", "/blobs/"},     // The Hugging Face hub: snapshots/REVISION/model.pb -> ../../blobs/HASH.
      {"/", "/.dvc/cache/"},          // DVC with cache.type = symlink.
      {"/", "/.git/annex/objects/"},  // git-annex.
  };
  std::vector<std::string> stores;
  const std::string path = absl::StrCat(folder, "/");
  for (const Layout& layout : kLayouts) {
    for (size_t at = path.find(layout.models); at != std::string::npos; at = path.find(layout.models, at + 1)) {
      stores.push_back(absl::StrCat(path.substr(0, at), layout.store));
    }
  }
  return stores;
}

// Returns whether `found` is a file of the content-addressed cache that `folder` is a part of. Both are resolved paths.
bool IsInCacheOfFolder(absl::string_view found, absl::string_view folder) {
  if (!IsContentHash(found.substr(found.rfind('/') + 1))) return false;
  for (const std::string& store : StoresOf(folder)) {
    if (absl::StartsWith(found, store)) return true;
  }
  return false;
}

// Returns whether the file that was found for `name` in `folder` may be read. Both are resolved paths.
bool IsContained(absl::string_view found, absl::string_view folder, absl::string_view name) {
  if (folder.empty()) return false;
  if (absl::StartsWith(found, folder == "/" ? folder : absl::StrCat(folder, "/"))) return true;
  return absl::EndsWith(found, absl::StrCat(folder.substr(folder.rfind('/')), "/", name)) ||
         IsInCacheOfFolder(found, folder);
}

// Adds to *found the files outside of `root` to which links in `folder`, which is `root` or below it, lead and which
// MapFileIn would read. `prefix` is the path from `root` to `folder`.
void AddLinkedFiles(const std::string& root, const std::string& folder, const std::string& prefix, int depth,
                    int* entries_left, std::vector<std::string>* found) {
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return;
  const absl::Cleanup close_listing = [listing] { closedir(listing); };
  for (const dirent* entry = readdir(listing); entry != nullptr && (*entries_left)-- > 0; entry = readdir(listing)) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = absl::StrCat(folder, "/", name);
    struct stat about;
    if (stat(path.c_str(), &about) != 0) continue;
    if (S_ISDIR(about.st_mode)) {
      if (depth > 0) AddLinkedFiles(root, path, absl::StrCat(prefix, name, "/"), depth - 1, entries_left, found);
      continue;
    }
    char resolved[PATH_MAX];
    if (!S_ISREG(about.st_mode) || realpath(path.c_str(), resolved) == nullptr) continue;
    if (absl::StartsWith(resolved, absl::StrCat(root, "/"))) continue;
    if (IsContained(resolved, root, absl::StrCat(prefix, name))) found->push_back(resolved);
  }
}

// Reads to the end of the file. `expected` is an estimate of the size.
absl::StatusOr<std::string> ReadToEnd(SystemCalls* calls, int file, const std::string& path, uint64_t expected,
                                      uint64_t limit) {
  constexpr size_t kMinChunk = 64 << 10;  // Pipes deliver at most this much at a time by default.
  constexpr size_t kMaxChunk = 8 << 20;
  std::string text;
  size_t filled = 0;
  for (;;) {
    if (filled == text.size()) {
      // Reads one byte more than expected, so that the end is detected without growing the buffer.
      const uint64_t missing = expected >= filled ? expected - filled + 1 : 0;
      text.resize(filled + std::clamp<uint64_t>(missing, kMinChunk, std::max<size_t>(kMaxChunk, filled)));
    }
    const ssize_t count = calls->Read(file, &text[filled], text.size() - filled);
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemError("read", path, errno);
    }
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled > limit) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot read '", path, "': it has more than ", limit, " bytes"));
    }
  }
  text.resize(filled);
  return text;
}

absl::StatusOr<FileView> MapOpenFile(SystemCalls* calls, int file, const struct stat& about, const std::string& path) {
  // Files in /proc and similar file systems report that they are regular and empty although they have content.
  if (!S_ISREG(about.st_mode) || about.st_size == 0) {
    PF_ASSIGN_OR_RETURN(std::string text, ReadToEnd(calls, file, path, 0, kMaxStreamBytes));
    auto kept = std::make_shared<const std::string>(std::move(text));
    return FileView{*kept, kept};
  }
  const size_t size = static_cast<size_t>(about.st_size);
  void* data = calls->Map(file, size);
  if (data == MAP_FAILED) return SystemError("map", path, errno);
  PreferHugePages(data, size);
  return FileView{absl::string_view(static_cast<const char*>(data), size), OwnMapping(data, size)};
}

}  // namespace

absl::StatusOr<FileView> PosixFileSystem::MapFile(const std::string& given) {
  const std::string path = ExpandHome(given);
  struct stat about;
  PF_ASSIGN_OR_RETURN(const int file, OpenToRead(calls_, path, 0, &about));
  const absl::Cleanup close_file = [file] { close(file); };
  return MapOpenFile(calls_, file, about, path);
}

absl::StatusOr<FileView> PosixFileSystem::MapFileIn(const std::string& folder, const std::string& name) {
  const std::string path = ExpandHome(folder) + name;
  struct stat about;
  PF_ASSIGN_OR_RETURN(const int file, OpenToRead(calls_, path, 0, &about));
  const absl::Cleanup close_file = [file] { close(file); };
  // The check is made on the open file, so that the file cannot be exchanged between check and use.
  const std::string place = ExpandHome(folder);
  const int root = calls_->Open(place.empty() ? "." : place.c_str(), O_PATH | O_DIRECTORY, 0);
  if (root < 0) return SystemError("open", path, errno);
  const absl::Cleanup close_root = [root] { close(root); };
  const std::string found = ResolvedPath(file);
  if (!IsContained(found, ResolvedPath(root), name)) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot open '", path, "': it leads out of its folder, to '", found,
                     "'; copy the model with links followed (cp -rL) if that is intended"));
  }
  return MapOpenFile(calls_, file, about, path);
}

absl::StatusOr<FileView> PosixFileSystem::MapOwnFile(const std::string& given) {
  const std::string path = ExpandHome(given);
  struct stat about;
  const absl::StatusOr<int> opened = OpenToRead(calls_, path, O_NOFOLLOW, &about);
  if (!opened.ok() && lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat("cannot open '", path, "': it is a symbolic link"));
  }
  PF_RETURN_IF_ERROR(opened.status());
  const absl::Cleanup close_file = [file = *opened] { close(file); };
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot open '", path, "': another user owns it"));
  }
  if ((about.st_mode & S_IWOTH) != 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot open '", path, "': every user may write it"));
  }
  return MapOpenFile(calls_, *opened, about, path);
}

absl::StatusOr<std::string> PosixFileSystem::ReadFile(const std::string& given) {
  const std::string path = ExpandHome(given);
  struct stat about;
  PF_ASSIGN_OR_RETURN(const int file, OpenToRead(calls_, path, 0, &about));
  const absl::Cleanup close_file = [file] { close(file); };
  const uint64_t size = S_ISREG(about.st_mode) ? static_cast<uint64_t>(about.st_size) : 0;
  return ReadToEnd(calls_, file, path, size, std::max(size, kMaxStreamBytes));
}

absl::StatusOr<std::unique_ptr<FileWriter>> PosixFileSystem::NewWriter(const std::string& path,
                                                                       uint64_t expected_size) {
  return OpenPosixWriter(calls_, ExpandHome(path), Links::kFollow, expected_size);
}

absl::StatusOr<std::unique_ptr<FileWriter>> PosixFileSystem::NewOwnWriter(const std::string& path,
                                                                          uint64_t expected_size) {
  return OpenPosixWriter(calls_, ExpandHome(path), Links::kReplace, expected_size);
}

absl::Status PosixFileSystem::WritePrivateFile(const std::string& path, absl::string_view bytes) {
  return MakePrivateFile(calls_, ExpandHome(path), bytes);
}

absl::StatusOr<FileStat> PosixFileSystem::Stat(const std::string& given) {
  const std::string path = ExpandHome(given);
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return SystemError("open", path, errno);
  FileStat result;
  result.is_directory = S_ISDIR(about.st_mode);
  result.is_regular = S_ISREG(about.st_mode);
  if (result.is_regular) result.size = static_cast<uint64_t>(about.st_size);
  return result;
}

bool PosixFileSystem::Exists(const std::string& path) {
  struct stat about;
  return stat(ExpandHome(path).c_str(), &about) == 0;
}

bool PosixFileSystem::IsSameFile(const std::string& a, const std::string& b) {
  struct stat about_a, about_b;
  return stat(ExpandHome(a).c_str(), &about_a) == 0 && stat(ExpandHome(b).c_str(), &about_b) == 0 &&
         about_a.st_dev == about_b.st_dev && about_a.st_ino == about_b.st_ino;
}

absl::StatusOr<std::vector<std::string>> PosixFileSystem::ListDirectory(const std::string& given) {
  const std::string path = ExpandHome(given);
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return SystemError("list", path, errno);
  const absl::Cleanup close_folder = [folder] { closedir(folder); };
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return SystemError("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status PosixFileSystem::MakeDirectory(const std::string& given) {
  const std::string path = ExpandHome(given);
  if (mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  const int error_number = errno;
  struct stat about;
  if (error_number == EEXIST && stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) return absl::OkStatus();
  return SystemError("create the folder", path, error_number);
}

FileSystem& RealFileSystem() {
  static SystemCalls* calls = new SystemCalls;
  static PosixFileSystem* file_system = new PosixFileSystem(calls);
  return *file_system;
}

std::vector<std::string> LinkedFilesOf(const std::string& folder) {
  constexpr int kMostEntries = 10000;  // Far above the files of a model; the walk takes about 20 ms.
  constexpr int kMostDepth = 4;        // As deep as the folders of models are: variables/, assets.extra/.
  std::vector<std::string> found;
  char root[PATH_MAX];
  if (realpath(ExpandHome(folder).c_str(), root) == nullptr) return found;
  int entries_left = kMostEntries;
  AddLinkedFiles(root, root, "", kMostDepth, &entries_left, &found);
  return found;
}

std::string ExpandHome(absl::string_view path) {
  if (path.empty() || path[0] != '~') return std::string(path);
  const size_t slash = std::min(path.find('/'), path.size());
  const std::string user(path.substr(1, slash - 1));
  const char* home = nullptr;
  std::vector<char> buffer(16 << 10);  // Larger than any entry of the user database.
  passwd entry;
  passwd* found = nullptr;
  if (user.empty()) {
    home = getenv("HOME");
    if (home == nullptr && getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
        found != nullptr) {
      home = found->pw_dir;
    }
  } else if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    home = found->pw_dir;
  }
  return home == nullptr ? std::string(path) : absl::StrCat(home, path.substr(slash));
}

}  // namespace permafrost

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
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "graph/base/huge_pages.h"
#include "graph/base/status.h"
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

// Opens a file for reading and returns its attributes. The caller closes it.
absl::StatusOr<int> OpenToRead(SystemCalls* calls, const std::string& path, struct stat* about) {
  if (path.empty()) return absl::InvalidArgumentError("cannot open '': the path is empty");
  int file;
  do {
    file = calls->Open(path.c_str(), O_RDONLY, 0);
  } while (file < 0 && errno == EINTR);
  if (file < 0) return SystemError("open", path, errno);
  if (fstat(file, about) != 0) {
    const int error_number = errno;
    close(file);
    return SystemError("open", path, error_number);
  }
  if (S_ISDIR(about->st_mode)) {
    close(file);
    return SystemError("open", path, EISDIR);
  }
  return file;
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

}  // namespace

absl::StatusOr<FileView> PosixFileSystem::MapFile(const std::string& given) {
  const std::string path = ExpandHome(given);
  struct stat about;
  PF_ASSIGN_OR_RETURN(const int file, OpenToRead(calls_, path, &about));
  const absl::Cleanup close_file = [file] { close(file); };
  // Files in /proc and similar file systems report that they are regular and empty although they have content.
  if (!S_ISREG(about.st_mode) || about.st_size == 0) {
    PF_ASSIGN_OR_RETURN(std::string text, ReadToEnd(calls_, file, path, 0, kMaxStreamBytes));
    auto kept = std::make_shared<const std::string>(std::move(text));
    return FileView{*kept, kept};
  }
  const size_t size = static_cast<size_t>(about.st_size);
  void* data = calls_->Map(file, size);
  if (data == MAP_FAILED) return SystemError("map", path, errno);
  PreferHugePages(data, size);
  return FileView{absl::string_view(static_cast<const char*>(data), size), OwnMapping(data, size)};
}

absl::StatusOr<std::string> PosixFileSystem::ReadFile(const std::string& given) {
  const std::string path = ExpandHome(given);
  struct stat about;
  PF_ASSIGN_OR_RETURN(const int file, OpenToRead(calls_, path, &about));
  const absl::Cleanup close_file = [file] { close(file); };
  const uint64_t size = S_ISREG(about.st_mode) ? static_cast<uint64_t>(about.st_size) : 0;
  return ReadToEnd(calls_, file, path, size, std::max(size, kMaxStreamBytes));
}

absl::StatusOr<std::unique_ptr<FileWriter>> PosixFileSystem::NewWriter(const std::string& path,
                                                                       uint64_t expected_size) {
  return OpenPosixWriter(calls_, ExpandHome(path), expected_size);
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

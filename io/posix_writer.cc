// Implements FileWriter: writes a temporary file next to the target and renames it when it is complete and synced.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/checked_files.h"
#include "io/hint_thread.h"
#include "io/mapped_pages.h"
#include "io/posix_file_system.h"
#include "io/system_error.h"

namespace permafrost {
namespace {

// Small writes are gathered, and the kernel gets chunks of this size at multiples of this size, except for the last
// bytes. File systems that support large pages in the page cache create them for such writes, and mapping a file of
// large pages is fast: a model of 19 MB takes 2 ms to map and touch when written tensor by tensor, and 0.07 ms when
// written in such chunks (ext4, Linux 6.18).
constexpr size_t kChunkBytes = 2 << 20;
// Maximum size of one write call. Write-back starts after each call, so that little remains for the final fsync.
constexpr size_t kWriteBackBytes = 8 << 20;
// Bytes per step of ReserveAhead. The first write may have to wait for one step.
constexpr size_t kAheadBytes = 512 << 10;

// Permissions of a new file before the umask is applied.
constexpr mode_t kNewFileMode = 0666;

// Returns `.permafrost-<random>.tmp` in the directory of `target`. It is hidden, and not derived from the target's
// name, which may already have the maximum length.
absl::StatusOr<std::string> TemporaryName(const std::string& target) {
  uint64_t random;
  if (getrandom(&random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) {
    return SystemError("write", target, errno);
  }
  const size_t slash = target.rfind('/');
  const absl::string_view folder =
      slash == std::string::npos ? absl::string_view() : absl::string_view(target).substr(0, slash + 1);
  // absl::StrFormat ends the process if memory runs out.
  return absl::StrCat(folder, kTemporaryPrefix, absl::Hex(random, absl::kZeroPad16), kTemporarySuffix);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Locks an open temporary file until all its descriptors are closed. A sweeper takes an unlocked file for one
// that a killed process left. Returns false if a sweeper was faster and has removed the file. File systems without
// locks are not swept either.
bool LockTemporary(int file) {
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat about;
  return fstat(file, &about) != 0 || about.st_nlink > 0;
}

bool IsTemporaryName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kTemporaryPrefix) && absl::ConsumeSuffix(&name, kTemporarySuffix) &&
         name.size() == 16 && name.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// Removes the temporary files of killed processes from a folder. Ignores errors: the files are only in the way.
void SweepFolder(const std::string& path) {
  constexpr int kMostEntries = 100000;  // About 20 ms; a larger folder is not swept completely.
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return;
  const absl::Cleanup close_folder = [folder] { closedir(folder); };
  int left = kMostEntries;
  for (const dirent* entry = readdir(folder); entry != nullptr && left-- > 0; entry = readdir(folder)) {
    if (!IsTemporaryName(entry->d_name)) continue;
    const int file = openat(dirfd(folder), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    const absl::Cleanup close_file = [file] { close(file); };
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid()) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(folder), entry->d_name, 0);
  }
}

class PosixWriter : public FileWriter {
 public:
  // Creates a writer that replaces `target`. `temporary` is the name of `file`, or empty if it has none yet.
  static std::unique_ptr<PosixWriter> Replace(SystemCalls* calls, int file, std::string target, std::string temporary) {
    return std::unique_ptr<PosixWriter>(
        new PosixWriter(calls, file, std::move(target), std::move(temporary), /*replaces=*/true));
  }
  // Creates a writer that writes directly to `target`.
  static std::unique_ptr<PosixWriter> WriteInto(SystemCalls* calls, int file, std::string target) {
    return std::unique_ptr<PosixWriter>(new PosixWriter(calls, file, std::move(target), "", /*replaces=*/false));
  }

  ~PosixWriter() override {
    StopAllocating();
    if (file_ >= 0) close(file_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  absl::Status Reserve(uint64_t size) override {
    StopAllocating();
    if (!replaces_ || size == 0) return absl::OkStatus();
    if (calls_->Allocate(file_, size) != 0 && (errno == ENOSPC || errno == EFBIG)) return Error("write", errno);
    allocated_ = std::max(allocated_, size);
    return absl::OkStatus();
  }

  void ReserveAhead(uint64_t size) override {
    if (!replaces_ || size < kAheadBytes || allocator_.joinable()) return;
    allocator_ = StartHintThread([this, size] {
      while (allocated_ahead_ < size && !is_allocating_stopped_) {
        if (calls_->AllocateInMemory(file_, allocated_ahead_, kAheadBytes) != 0) return;
        allocated_ahead_ += kAheadBytes;
      }
    });
  }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t room = kChunkBytes - (written_ + buffer_.size()) % kChunkBytes;
      if (room == kChunkBytes && bytes.size() >= kChunkBytes) {
        const absl::string_view chunks = bytes.substr(0, bytes.size() / kChunkBytes * kChunkBytes);
        PF_RETURN_IF_ERROR(WriteAll(chunks));
        bytes.remove_prefix(chunks.size());
        continue;
      }
      const absl::string_view piece = bytes.substr(0, room);
      buffer_.append(piece.data(), piece.size());
      if (allocated_ >= kStreamedBytes) ReleasePages(piece);
      if (piece.size() == room) PF_RETURN_IF_ERROR(Flush());
      bytes.remove_prefix(piece.size());
    }
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    PF_RETURN_IF_ERROR(Flush());
    // Releases space reserved beyond the end.
    if (allocated_ > written_ && ftruncate(file_, static_cast<off_t>(written_)) != 0) return Error("write", errno);
    // Pipes and devices cannot be synced and report EINVAL or EROFS.
    if (calls_->Sync(file_) != 0 && replaces_) return Error("write", errno);
    if (replaces_ && temporary_.empty()) PF_RETURN_IF_ERROR(NameFile());
    // Keeps the lock until the file has its final name. Without it, the file could only be swept earlier.
    const int lock = replaces_ ? fcntl(file_, F_DUPFD_CLOEXEC, 0) : -1;
    const absl::Cleanup close_lock = [lock] {
      if (lock >= 0) close(lock);
    };
    const int file = file_;
    file_ = -1;
    // Network file systems may report a failed write only on close.
    if (close(file) != 0 && errno != EINTR) return Error("write", errno);
    if (!replaces_) return absl::OkStatus();
    if (calls_->Rename(temporary_.c_str(), target_.c_str()) != 0) return Error("replace", errno);
    temporary_.clear();
    return SyncFolder();
  }

 private:
  PosixWriter(SystemCalls* calls, int file, std::string target, std::string temporary, bool replaces)
      : calls_(calls), file_(file), target_(std::move(target)), temporary_(std::move(temporary)), replaces_(replaces) {}

  // Stops the thread of ReserveAhead, which would delay writes by the kernel.
  void StopAllocating() {
    if (!allocator_.joinable()) return;
    is_allocating_stopped_ = true;
    allocator_.join();
    allocated_ = std::max(allocated_, allocated_ahead_);
  }

  // Gives the unnamed file a temporary name that can be renamed.
  absl::Status NameFile() {
    for (;;) {
      PF_ASSIGN_OR_RETURN(std::string name, TemporaryName(target_));
      if (calls_->Link(file_, name.c_str()) == 0) {
        temporary_ = std::move(name);
        return absl::OkStatus();
      }
      if (errno != EEXIST && errno != EINTR) return Error("write", errno);
    }
  }

  absl::Status Error(absl::string_view action, int error_number) const {
    return SystemError(action, target_, error_number);
  }

  absl::Status Flush() {
    PF_RETURN_IF_ERROR(WriteAll(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  absl::Status WriteAll(absl::string_view bytes) {
    StopAllocating();
    while (!bytes.empty()) {
      const ssize_t count = calls_->Write(file_, bytes.data(), std::min(bytes.size(), kWriteBackBytes));
      if (count < 0) {
        if (errno == EINTR) continue;
        return Error("write", errno);
      }
      if (allocated_ >= kStreamedBytes) ReleasePages(bytes.substr(0, static_cast<size_t>(count)));
      bytes.remove_prefix(static_cast<size_t>(count));
      written_ += static_cast<uint64_t>(count);
      if (written_ - started_ >= kWriteBackBytes && replaces_) {
        // Only a hint: if it is not supported, fsync does all the work.
        (void)sync_file_range(file_, static_cast<off_t>(started_), static_cast<off_t>(written_ - started_),
                              SYNC_FILE_RANGE_WRITE);
        started_ = written_;
      }
    }
    return absl::OkStatus();
  }

  // Makes the rename durable. The file is already in place. A file system that cannot sync directories is not an error;
  // a failing disk is, and the error describes the state of the file.
  absl::Status SyncFolder() {
    const int file = calls_->Open(FolderOf(target_).c_str(), O_RDONLY | O_DIRECTORY, 0);
    if (file < 0) return absl::OkStatus();  // The directory may be writable but not readable.
    const bool failed = calls_->Sync(file) != 0 && errno == EIO;
    close(file);
    if (!failed) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("'", target_, "' is written, but its folder could not be synced (",
                                            strerror(EIO), "): it may not survive a loss of power"));
  }

  SystemCalls* calls_;
  int file_;
  std::string target_;
  std::string temporary_;  // Name of the file until Commit renames it; empty if it has none.
  const bool replaces_;    // False if the file is the target itself, a pipe or a device.
  std::string buffer_;
  uint64_t allocated_ = 0;  // Bytes reserved on the disk.
  uint64_t written_ = 0;    // Bytes passed to the kernel.
  uint64_t started_ = 0;    // Bytes for which write-back was started.
  // Written only by the thread of ReserveAhead until it ends.
  uint64_t allocated_ahead_ = 0;
  std::atomic<bool> is_allocating_stopped_{false};
  std::thread allocator_;
};

// Returns the file that `path` refers to after following symbolic links, including links to files that do not exist
// yet.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  constexpr int kMaxLinks = 40;  // The limit of the kernel.
  std::string target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    char link[PATH_MAX];
    const ssize_t size = readlink(target.c_str(), link, sizeof(link));
    if (size < 0) return target;
    const absl::string_view named(link, static_cast<size_t>(size));
    const size_t slash = target.rfind('/');
    target = named[0] == '/' || slash == std::string::npos ? std::string(named)
                                                           : absl::StrCat(target.substr(0, slash + 1), named);
  }
  return SystemError("write", path, ELOOP);
}

// Returns the permissions of new files. Kernels before 6.0 ignore the umask for unnamed files, and umask() could only
// query it by changing it for all threads.
std::optional<mode_t> PermissionsOfNewFiles() {
  const int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (status < 0) return std::nullopt;
  // The line is near the beginning of the file.
  char text[1024];
  const ssize_t size = read(status, text, sizeof(text) - 1);
  close(status);
  if (size <= 0) return std::nullopt;
  text[size] = '\0';
  constexpr char kKey[] = "\nUmask:";
  const char* const line = strstr(text, kKey);
  if (line == nullptr) return std::nullopt;
  return kNewFileMode & ~static_cast<mode_t>(strtoul(line + sizeof(kKey) - 1, nullptr, 8));
}

// Opens an unnamed file in the directory of `target`, with `permissions` or those of a new file. Returns -1 if that is
// not supported or the file could not be named later.
int OpenUnnamed(SystemCalls* calls, const std::string& target, std::optional<mode_t> permissions) {
  if (!permissions.has_value()) permissions = PermissionsOfNewFiles();
  if (!permissions.has_value()) return -1;
  const int file = calls->Open(FolderOf(target).c_str(), O_WRONLY | O_TMPFILE, *permissions);
  if (file < 0 || access(OpenFilePath(file).c_str(), F_OK) == 0) return file;
  close(file);
  return -1;
}

// Opens the file that will replace `target`. Sets *temporary to its name, or to an empty string if it has none.
absl::StatusOr<int> OpenTemporary(SystemCalls* calls, const std::string& target, std::optional<mode_t> permissions,
                                  std::string* temporary) {
  if (const int file = OpenUnnamed(calls, target, permissions); file >= 0) {
    (void)flock(file, LOCK_EX | LOCK_NB);  // Before Commit names the file.
    return file;
  }
  for (;;) {
    PF_ASSIGN_OR_RETURN(*temporary, TemporaryName(target));
    const int file = calls->Open(temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL, kNewFileMode);
    if (file >= 0) {
      if (LockTemporary(file)) return file;
      close(file);
    } else if (errno != EEXIST && errno != EINTR) {
      return SystemError("write", target, errno);
    }
  }
}

}  // namespace

absl::Status MakePrivateFile(SystemCalls* calls, const std::string& path, absl::string_view bytes) {
  if (path.empty()) return absl::InvalidArgumentError("cannot write '': the path is empty");
  int file;
  do {
    file = calls->Open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  } while (file < 0 && errno == EINTR);
  if (file < 0) return SystemError("write", path, errno);
  // Writes in place, because a rename could replace an existing file. Removes the file if anything fails.
  int error_number = 0;
  for (absl::string_view left = bytes; !left.empty() && error_number == 0;) {
    const ssize_t count = calls->Write(file, left.data(), left.size());
    if (count >= 0) {
      left.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  if (error_number == 0 && calls->Sync(file) != 0) error_number = errno;
  if (close(file) != 0 && errno != EINTR && error_number == 0) error_number = errno;
  if (error_number == 0) return absl::OkStatus();
  unlink(path.c_str());
  return SystemError("write", path, error_number);
}

absl::StatusOr<std::unique_ptr<FileWriter>> OpenPosixWriter(SystemCalls* calls, const std::string& path, Links links,
                                                            uint64_t expected_size) {
  if (path.empty()) return absl::InvalidArgumentError("cannot write '': the path is empty");
  if (path.back() == '/') return SystemError("write", path, EISDIR);
  std::string target = path;
  struct stat about;
  bool exists;
  if (links == Links::kFollow) {
    PF_ASSIGN_OR_RETURN(target, FollowLinks(path));
    exists = stat(path.c_str(), &about) == 0;
  } else {
    exists = lstat(path.c_str(), &about) == 0;
  }
  if (!exists && errno != ENOENT) return SystemError("write", path, errno);
  if (exists && S_ISDIR(about.st_mode)) return SystemError("write", path, EISDIR);
  if (links == Links::kReplace && exists) {
    if (!S_ISREG(about.st_mode) && !S_ISLNK(about.st_mode)) return SystemError("write", path, EINVAL);
    exists = S_ISREG(about.st_mode);  // A link is replaced by a new file.
  }
  if (exists && !S_ISREG(about.st_mode)) {
    const int file = calls->Open(path.c_str(), O_WRONLY, 0);
    if (file < 0) return SystemError("write", path, errno);
    return PosixWriter::WriteInto(calls, file, path);
  }
  // A rename would bypass the write protection of a file.
  if (exists && access(path.c_str(), W_OK) != 0) return SystemError("write", path, errno);
  SweepFolder(FolderOf(target));
  constexpr mode_t kPermissions = 0777;
  const std::optional<mode_t> permissions =
      exists ? std::make_optional<mode_t>(about.st_mode & kPermissions) : std::nullopt;
  std::string temporary;
  PF_ASSIGN_OR_RETURN(const int file, OpenTemporary(calls, target, permissions, &temporary));
  std::unique_ptr<FileWriter> writer = PosixWriter::Replace(calls, file, target, temporary);
  if (exists && fchmod(file, *permissions) != 0) return SystemError("write", target, errno);
  PF_RETURN_IF_ERROR(writer->Reserve(expected_size));
  return writer;
}

}  // namespace permafrost

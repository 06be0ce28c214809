// Writes a file beside the one that it replaces and puts it in place when it is complete and on the disk. Where the
// system has files without a name it is one until then, so that a process that is killed leaves nothing behind.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/status.h"
#include "io/mapped_pages.h"
#include "io/posix_file_system.h"
#include "io/system_error.h"

namespace permafrost {
namespace {

// Small pieces are gathered up to this size; a piece of at least kDirectBytes goes to the kernel as it is.
constexpr size_t kBufferBytes = 256 << 10;
constexpr size_t kDirectBytes = 64 << 10;
// One call writes at most this much, and the disk is told to start on it at once, so that the final fsync finds little
// left to do.
constexpr size_t kWriteBackBytes = 8 << 20;

// With a slash at its end.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// How the kernel calls an open file without a name.
std::string OpenFilePath(int file) { return absl::StrCat("/proc/self/fd/", file); }

// A name beside the target, for a moment: hidden, and not derived from one that may already have the greatest length.
absl::StatusOr<std::string> TemporaryName(const std::string& target) {
  uint64_t random;
  if (getrandom(&random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) {
    return SystemError("write", target, errno);
  }
  return absl::StrFormat("%s.permafrost-%016x.tmp", FolderOf(target), random);
}

// What is being written.
struct Unfinished {
  int file = -1;
  std::string temporary;  // Its name; empty where it has none, or where it is the target itself.
  bool is_target = false;
};

class PosixWriter : public FileWriter {
 public:
  // `target` is what the file becomes.
  PosixWriter(SystemCalls* calls, Unfinished unfinished, std::string target, uint64_t allocated)
      : calls_(calls),
        file_(unfinished.file),
        is_target_(unfinished.is_target),
        target_(std::move(target)),
        temporary_(std::move(unfinished.temporary)),
        allocated_(allocated) {
    buffer_.reserve(kBufferBytes);
  }

  ~PosixWriter() override {
    if (file_ >= 0) close(file_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  absl::Status Append(absl::string_view bytes) override {
    if (bytes.size() < kDirectBytes) {
      if (buffer_.size() + bytes.size() > kBufferBytes) PF_RETURN_IF_ERROR(Flush());
      buffer_.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    }
    PF_RETURN_IF_ERROR(Flush());
    return WriteAll(bytes);
  }

  absl::Status Commit() override {
    PF_RETURN_IF_ERROR(Flush());
    // Gives back what was set aside beyond the end.
    if (allocated_ > written_ && ftruncate(file_, static_cast<off_t>(written_)) != 0) return Error("write", errno);
    // A pipe or device has nothing to sync and says EINVAL or EROFS.
    if (calls_->Sync(file_) != 0 && !is_target_) return Error("write", errno);
    if (!is_target_ && temporary_.empty()) PF_RETURN_IF_ERROR(GiveName());
    const int file = file_;
    file_ = -1;
    // Network file systems may report a failed write as late as this.
    if (close(file) != 0 && errno != EINTR) return Error("write", errno);
    if (is_target_) return absl::OkStatus();
    if (calls_->Rename(temporary_.c_str(), target_.c_str()) != 0) return Error("replace", errno);
    temporary_.clear();
    return SyncFolder();
  }

 private:
  absl::Status Error(absl::string_view action, int error_number) const {
    return SystemError(action, target_, error_number);
  }

  // A link cannot take another file's place, only a rename can, and that needs a name.
  absl::Status GiveName() {
    for (;;) {
      PF_ASSIGN_OR_RETURN(std::string name, TemporaryName(target_));
      if (calls_->Link(OpenFilePath(file_).c_str(), name.c_str()) == 0) {
        temporary_ = std::move(name);
        return absl::OkStatus();
      }
      if (errno != EEXIST && errno != EINTR) return Error("write", errno);
    }
  }

  absl::Status Flush() {
    PF_RETURN_IF_ERROR(WriteAll(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  absl::Status WriteAll(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = calls_->Write(file_, bytes.data(), std::min(bytes.size(), kWriteBackBytes));
      if (count < 0) {
        if (errno == EINTR) continue;
        return Error("write", errno);
      }
      if (allocated_ >= kStreamedBytes) ReleasePages(bytes.substr(0, static_cast<size_t>(count)));
      bytes.remove_prefix(static_cast<size_t>(count));
      written_ += static_cast<uint64_t>(count);
      if (written_ - started_ >= kWriteBackBytes && !is_target_) {
        // Only a hint: where it is not supported, fsync does all the work.
        (void)sync_file_range(file_, static_cast<off_t>(started_), static_cast<off_t>(written_ - started_),
                              SYNC_FILE_RANGE_WRITE);
        started_ = written_;
      }
    }
    return absl::OkStatus();
  }

  // Makes the rename last. The file is in place by now; a file system that cannot sync a folder loses nothing, and a
  // broken disk is an error that says where things stand.
  absl::Status SyncFolder() {
    const int file = calls_->Open(FolderOf(target_).c_str(), O_RDONLY | O_DIRECTORY, 0);
    if (file < 0) return absl::OkStatus();  // Writable but not readable: allowed.
    const bool failed = calls_->Sync(file) != 0 && errno == EIO;
    close(file);
    if (!failed) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("'", target_, "' is written, but its folder could not be synced (",
                                            strerror(EIO), "): it may not survive a loss of power"));
  }

  SystemCalls* calls_;
  int file_;
  const bool is_target_;
  std::string target_;
  std::string temporary_;  // See Unfinished.
  std::string buffer_;
  uint64_t allocated_;    // Bytes that were set aside on the disk.
  uint64_t written_ = 0;  // Bytes that the kernel has.
  uint64_t started_ = 0;  // Of those, the bytes that the disk was told to start on.
};

// The file that `path` names after symbolic links; a link to a file that does not exist yet is followed too.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  constexpr int kMaxLinks = 40;  // As the kernel.
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

// Whether an open without a name failed since the kernel, or the file system, has no such files.
bool HasNoUnnamedFiles(int error_number) {
  return error_number == EOPNOTSUPP || error_number == EISDIR || error_number == EINVAL;
}

absl::StatusOr<Unfinished> OpenUnfinished(SystemCalls* calls, const std::string& target, mode_t mode) {
  Unfinished made;
  do {
    made.file = calls->Open(FolderOf(target).c_str(), O_WRONLY | O_TMPFILE, mode);
  } while (made.file < 0 && errno == EINTR);
  if (made.file >= 0) {
    // Without /proc it would never get a name.
    if (access(OpenFilePath(made.file).c_str(), F_OK) == 0) return made;
    close(made.file);
  } else if (!HasNoUnnamedFiles(errno)) {
    return SystemError("write", target, errno);
  }
  for (;;) {
    PF_ASSIGN_OR_RETURN(made.temporary, TemporaryName(target));
    made.file = calls->Open(made.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode);
    if (made.file >= 0) return made;
    if (errno != EEXIST && errno != EINTR) return SystemError("write", target, errno);
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
  // Written in place, since a rename could replace a file; removed again when anything fails.
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

absl::StatusOr<std::unique_ptr<FileWriter>> OpenPosixWriter(SystemCalls* calls, const std::string& path,
                                                            uint64_t expected_size) {
  if (path.empty()) return absl::InvalidArgumentError("cannot write '': the path is empty");
  if (path.back() == '/') return SystemError("write", path, EISDIR);
  PF_ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  struct stat about;
  const bool exists = stat(path.c_str(), &about) == 0;
  if (!exists && errno != ENOENT) return SystemError("write", path, errno);
  if (exists && S_ISDIR(about.st_mode)) return SystemError("write", path, EISDIR);
  if (exists && !S_ISREG(about.st_mode)) {
    const int file = calls->Open(path.c_str(), O_WRONLY, 0);
    if (file < 0) return SystemError("write", path, errno);
    return std::make_unique<PosixWriter>(calls, Unfinished{file, "", true}, path, 0);
  }
  // A rename would get past the protection of a file that may not be written.
  if (exists && access(path.c_str(), W_OK) != 0) return SystemError("write", path, errno);
  constexpr mode_t kPermissions = 0777;
  PF_ASSIGN_OR_RETURN(Unfinished unfinished, OpenUnfinished(calls, target, 0666));
  const int file = unfinished.file;
  auto writer = std::make_unique<PosixWriter>(calls, std::move(unfinished), target, expected_size);
  if (exists && fchmod(file, about.st_mode & kPermissions) != 0) return SystemError("write", target, errno);
  if (expected_size > 0 && calls->Allocate(file, expected_size) != 0 && (errno == ENOSPC || errno == EFBIG)) {
    return SystemError("write", target, errno);
  }
  return writer;
}

}  // namespace permafrost

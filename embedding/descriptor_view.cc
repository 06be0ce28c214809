// Implements mapping of regular files and reading of streams.
#include "embedding/descriptor_view.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/huge_pages.h"
#include "graph/base/status.h"
#include "io/system_error.h"

namespace permafrost {
namespace {

absl::Status DescriptorError(absl::string_view action, int descriptor) {
  const int error_number = errno;
  const absl::Status status = SystemError(action, absl::StrCat("file descriptor ", descriptor), error_number);
  return error_number == EBADF ? absl::InvalidArgumentError(status.message()) : status;
}

absl::StatusOr<FileView> ReadStream(int descriptor) {
  constexpr size_t kChunk = 1 << 20;
  auto text = std::make_shared<std::string>();
  for (size_t filled = 0;;) {
    if (filled == text->size()) text->resize(filled + std::max(kChunk, filled / 2));
    const ssize_t count = read(descriptor, &(*text)[filled], text->size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return DescriptorError("read", descriptor);
    filled += static_cast<size_t>(count);
    if (filled > kMaxStreamBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot read 'file descriptor ", descriptor, "': it has more than ", kMaxStreamBytes, " bytes"));
    }
    if (count > 0) continue;
    text->resize(filled);
    return FileView{*text, text};
  }
}

}  // namespace

absl::StatusOr<FileView> ViewDescriptor(int descriptor, uint64_t offset, uint64_t length) {
  struct stat about;
  if (fstat(descriptor, &about) != 0) return DescriptorError("read", descriptor);
  if (S_ISDIR(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("file descriptor ", descriptor, " is a folder, expected a file"));
  }
  if (!S_ISREG(about.st_mode)) {
    if (offset == 0 && length == 0) return ReadStream(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat("file descriptor ", descriptor, " is a stream: found an offset or length, expected 0"));
  }
  const auto size = static_cast<uint64_t>(about.st_size);
  if (offset > size || length > size - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("file descriptor ", descriptor, " has ", size, " bytes, expected ", length, " at ", offset));
  }
  if (length == 0) length = size - offset;
  // Files in /proc and similar file systems report a size of 0 although they have content.
  if (size == 0) return ReadStream(descriptor);
  if (length == 0) return FileView{};
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = offset % page;
  const size_t mapped = static_cast<size_t>(length + before);
  void* const data = mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, descriptor, static_cast<off_t>(offset - before));
  if (data == MAP_FAILED) return DescriptorError("map", descriptor);
  PreferHugePages(data, mapped);
  Owner owner(data, [mapped](const void* from) { munmap(const_cast<void*>(from), mapped); });
  return FileView{absl::string_view(static_cast<const char*>(data) + before, static_cast<size_t>(length)),
                  std::move(owner)};
}

}  // namespace permafrost

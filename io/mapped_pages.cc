// Implements the table of existing mappings.
#include "io/mapped_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "io/hint_thread.h"

namespace permafrost {
namespace {

// Sizes of the mappings, by their start address.
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, size_t> sizes;
};

// True if all of `bytes` are in one mapping. REQUIRES: the caller holds the mutex.
bool IsMapped(const Mappings& mappings, absl::string_view bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const auto after = mappings.sizes.upper_bound(begin);
  if (after == mappings.sizes.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return begin + bytes.size() <= start + size;
}

// MADV_POPULATE_READ, in kernel headers since 5.14. Older kernels return EINVAL.
constexpr int kPopulateRead = 22;
// Bytes per call, which bounds the time that the destructor may have to wait.
constexpr size_t kReadAheadBytes = 1 << 20;

// Maps the pages of a file on a thread until all are mapped or the reader is destroyed.
class PageReader {
 public:
  explicit PageReader(FileView file) : file_(std::move(file)), thread_(StartHintThread([this] { Run(); })) {}
  ~PageReader() {
    is_stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    char* const data = const_cast<char*>(file_.bytes.data());
    for (size_t at = 0; at < file_.bytes.size() && !is_stopped_; at += kReadAheadBytes) {
      // Only a hint: a page that cannot be read now is read, or fails, on its first use.
      if (madvise(data + at, std::min(kReadAheadBytes, file_.bytes.size() - at), kPopulateRead) != 0) return;
    }
  }

  const FileView file_;
  std::atomic<bool> is_stopped_{false};
  std::thread thread_;  // Declared last, because it uses the other members.
};

// Returns the table of mappings. Never destroyed, because owners may outlive other static objects.
Mappings& AllMappings() {
  static auto* const mappings = new Mappings;
  return *mappings;
}

}  // namespace

Owner OwnMapping(void* data, size_t size) {
  Mappings& mappings = AllMappings();
  {
    const std::lock_guard<std::mutex> lock(mappings.mutex);
    mappings.sizes[reinterpret_cast<uintptr_t>(data)] = size;
  }
  return Owner(data, [size](const void* mapped) {
    Mappings& all = AllMappings();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.sizes.erase(reinterpret_cast<uintptr_t>(mapped));
    munmap(const_cast<void*>(mapped), size);
  });
}

void ReleasePages(absl::string_view bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes.size()) / page * page;
  if (first >= end) return;
  Mappings& mappings = AllMappings();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  if (!IsMapped(mappings, bytes)) return;
  // Pages of a file mapping can be read again, so no data are lost. Only a hint, which the kernel may reject.
  (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

FileView ReadAhead(FileView file) {
  if (file.bytes.size() < kReadAheadBytes || file.bytes.size() >= kStreamedBytes) return file;
  if (reinterpret_cast<uintptr_t>(file.bytes.data()) % static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) != 0) return file;
  Mappings& mappings = AllMappings();
  {
    const std::lock_guard<std::mutex> lock(mappings.mutex);
    if (!IsMapped(mappings, file.bytes)) return file;
  }
  const absl::string_view bytes = file.bytes;
  return {bytes, std::make_shared<PageReader>(std::move(file))};
}

}  // namespace permafrost

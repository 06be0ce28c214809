// A table of the mappings that live.
#include "io/mapped_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <mutex>

namespace permafrost {
namespace {

// By the address where each begins; their sizes.
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, size_t> sizes;
};

// Lives as long as the process: owners may outlive any other static.
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
  const auto after = mappings.sizes.upper_bound(begin);
  if (after == mappings.sizes.begin()) return;
  const auto& [start, size] = *std::prev(after);
  if (begin + bytes.size() > start + size) return;
  // Of other memory this would take the content; here it can only be read again. A hint: it may be refused.
  (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace permafrost

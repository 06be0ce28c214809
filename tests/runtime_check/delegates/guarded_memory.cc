// Maps memory between guard pages.
#include "tests/runtime_check/delegates/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

size_t PageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Returns byte i of a repeated quiet NaN. Reads at any offset yield NaN, and the payload identifies the pattern.
char PatternAt(size_t i, unsigned char mark) {
  const char bytes[] = {static_cast<char>(mark), static_cast<char>(0xff), static_cast<char>(0xff),
                        static_cast<char>(0x7f)};
  return bytes[i % sizeof(bytes)];
}

unsigned char NextMark() {
  static unsigned char mark = 0;
  return ++mark;
}

}  // namespace

GuardedMemory::GuardedMemory(size_t size, size_t alignment) : size_(size), mark_(NextMark()) {
  const size_t page = PageSize();
  mapped_ = (size + page - 1) / page * page;
  if (mapped_ == 0) mapped_ = page;
  void* const mapping = mmap(nullptr, mapped_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) std::abort();
  pages_ = static_cast<char*>(mapping) + page;
  if (mprotect(pages_, mapped_, PROT_READ | PROT_WRITE) != 0) std::abort();
  data_ = pages_ + (mapped_ - size) / alignment * alignment;
  for (size_t i = 0; i < mapped_; ++i) pages_[i] = PatternAt(i, mark_);
}

GuardedMemory::~GuardedMemory() { munmap(pages_ - PageSize(), mapped_ + 2 * PageSize()); }

void GuardedMemory::Fill(absl::string_view bytes) {
  if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
}

void GuardedMemory::Scribble() {
  const unsigned char mark = NextMark();
  for (size_t i = 0; i < size_; ++i) data_[i] = PatternAt(i, mark);
}

void GuardedMemory::MakeReadOnly() {
  if (mprotect(pages_, mapped_, PROT_READ) != 0) std::abort();
}

absl::Status GuardedMemory::CheckSurroundings() const {
  for (size_t i = 0; i < mapped_; ++i) {
    const char* const at = pages_ + i;
    if ((at >= data_ && at < data_ + size_) || *at == PatternAt(i, mark_)) continue;
    return absl::InternalError(absl::StrCat("the byte at offset ", at - data_, " of ", size_, " was written to"));
  }
  return absl::OkStatus();
}

}  // namespace permafrost

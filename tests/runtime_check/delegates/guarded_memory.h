// Memory for tests in which a step too far shows: a read or write beyond it ends the process, or is found afterwards.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_GUARDED_MEMORY_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_GUARDED_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// `size` bytes of which the last lies as near as can be before a page that nobody may touch; so does the first of the
// pages behind another one. Where the alignment leaves room before the forbidden page, at most `alignment` - 1 bytes,
// it is filled with a pattern that makes NaN of any float, as is the memory itself at first.
class GuardedMemory {
 public:
  // REQUIRES: `alignment` is a power of 2, at most that of a page.
  GuardedMemory(size_t size, size_t alignment);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* data() const { return data_; }
  absl::string_view bytes() const { return {data_, size_}; }
  // REQUIRES: of this size.
  void Fill(absl::string_view bytes);
  // The pattern again, another at each call.
  void Scribble();
  // From now on a write ends the process, too.
  void MakeReadOnly();
  // Internal when the room around the memory was written to.
  absl::Status CheckSurroundings() const;

 private:
  size_t size_;
  size_t mapped_;          // Bytes of usable pages.
  char* pages_ = nullptr;  // Of the mapping, which begins with a forbidden page.
  char* data_ = nullptr;
  unsigned char mark_ = 0;  // Of the room.
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_GUARDED_MEMORY_H_

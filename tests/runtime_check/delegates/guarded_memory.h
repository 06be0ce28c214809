// Memory for tests that detect out-of-bounds accesses: a read or write beyond it ends the process, or is found
// afterwards.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_GUARDED_MEMORY_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_GUARDED_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// A buffer of `size` bytes that ends as close as possible to a guard page; another guard page precedes its first page.
// Alignment may leave up to `alignment` - 1 bytes before the guard page; they are filled with a pattern that is NaN as
// float, as is the buffer initially.
class GuardedMemory {
 public:
  // REQUIRES: `alignment` is a power of 2, at most the page size.
  GuardedMemory(size_t size, size_t alignment);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* data() const { return data_; }
  absl::string_view bytes() const { return {data_, size_}; }
  // REQUIRES: `bytes` has the size of the buffer.
  void Fill(absl::string_view bytes);
  // Fills the buffer with a new pattern at each call.
  void Scribble();
  // After this call, a write ends the process as well.
  void MakeReadOnly();
  // Returns Internal if the surrounding bytes were overwritten.
  absl::Status CheckSurroundings() const;

 private:
  size_t size_;
  size_t mapped_;          // Size of the accessible pages.
  char* pages_ = nullptr;  // Start of the mapping, which begins with a guard page.
  char* data_ = nullptr;
  unsigned char mark_ = 0;  // Pattern of the surrounding bytes.
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_GUARDED_MEMORY_H_

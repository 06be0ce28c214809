// Keeps track of mapped files, so that their pages can be released while the mapping remains.
#ifndef PERMAFROST_IO_MAPPED_PAGES_H_
#define PERMAFROST_IO_MAPPED_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "graph/tensor.h"
#include "io/file_system.h"

namespace permafrost {

// Takes ownership of `size` bytes at `data`, a read-only mapping, and unmaps them when destroyed.
Owner OwnMapping(void* data, size_t size);

// Removes the pages that are completely inside `bytes` from this process if `bytes` are part of an owned mapping;
// otherwise does nothing. The pages stay in the page cache and are mapped again when read. Code that streams more data
// than fits into memory calls it on data it has processed. Thread-safe.
void ReleasePages(absl::string_view bytes);

// Returns the same view and starts a thread that maps its pages, for a file that will be read completely. The thread
// ends when it is done or the view's last owner is gone. Returns small files, streamed files and other memory
// unchanged, without a thread.
FileView ReadAhead(FileView file);

// Files of at least this size are streamed: keeping one in memory would evict other data.
inline constexpr uint64_t kStreamedBytes = uint64_t{1} << 30;

}  // namespace permafrost

#endif  // PERMAFROST_IO_MAPPED_PAGES_H_

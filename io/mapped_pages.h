// Which memory is a mapped file, so that its pages can be given back while the mapping stays.
#ifndef PERMAFROST_IO_MAPPED_PAGES_H_
#define PERMAFROST_IO_MAPPED_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "graph/tensor.h"
#include "io/file_system.h"

namespace permafrost {

// Owns `size` bytes at `data`, which mmap gave for reading only, and unmaps them at its end.
Owner OwnMapping(void* data, size_t size);

// Takes the pages that lie wholly in `bytes` out of this process, where `bytes` are part of an owned mapping; does
// nothing with other memory. They stay in the system's cache, and come back when they are read again: what streams
// through more than the machine has calls this behind itself. Thread-safe.
void ReleasePages(absl::string_view bytes);

// The same view, whose pages another thread brings into this process meanwhile: for who is about to read all of a
// mapped file, as it is read when it is written again. The thread ends when it is done or the view's last owner is
// gone. Other memory, and files that are small or stream through, are returned as they are.
FileView ReadAhead(FileView file);

// Files of this size and more stream through: keeping all of one in memory would crowd out what else is there.
inline constexpr uint64_t kStreamedBytes = uint64_t{1} << 30;

}  // namespace permafrost

#endif  // PERMAFROST_IO_MAPPED_PAGES_H_

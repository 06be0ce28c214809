// Reads a part of a file that somebody else has opened.
#ifndef PERMAFROST_EMBEDDING_DESCRIPTOR_VIEW_H_
#define PERMAFROST_EMBEDDING_DESCRIPTOR_VIEW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "io/file_system.h"

namespace permafrost {

// `length` bytes from `offset` on, mapped; length 0 is up to the end. What is not a regular file is read to its end, at
// most kMaxStreamBytes, and has no offset. The descriptor is not needed any more then, and stays open. InvalidArgument:
// it is not open for reading, or the file ends before.
absl::StatusOr<FileView> ViewDescriptor(int descriptor, uint64_t offset, uint64_t length);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_DESCRIPTOR_VIEW_H_

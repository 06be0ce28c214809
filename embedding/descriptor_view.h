// Maps or reads a part of a file that the caller has opened.
#ifndef PERMAFROST_EMBEDDING_DESCRIPTOR_VIEW_H_
#define PERMAFROST_EMBEDDING_DESCRIPTOR_VIEW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "io/file_system.h"

namespace permafrost {

// Returns `length` bytes from `offset`, mapped. Length 0 means up to the end. Streams are read to their end, at most
// kMaxStreamBytes, and have no offset. The descriptor is not needed after the call and stays open. Returns
// InvalidArgument if it is not open for reading or the file is too short.
absl::StatusOr<FileView> ViewDescriptor(int descriptor, uint64_t offset, uint64_t length);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_DESCRIPTOR_VIEW_H_

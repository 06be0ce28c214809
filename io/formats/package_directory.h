// Constants of the directory of a memory-mapped package: MemmappedFileSystemDirectory and
// MemmappedFileSystemDirectoryElement of tensorflow/core/util/memmapped_file_system.proto.
#ifndef PERMAFROST_IO_FORMATS_PACKAGE_DIRECTORY_H_
#define PERMAFROST_IO_FORMATS_PACKAGE_DIRECTORY_H_

#include <cstdint>

namespace permafrost::package_directory {

// Field numbers of the directory and of an element.
inline constexpr uint32_t kElement = 1;
enum Element : uint32_t { kOffset = 1, kName = 2, kLength = 3 };

// Size of the footer, which holds the offset of the directory (little-endian).
inline constexpr uint64_t kFooterBytes = 8;

}  // namespace permafrost::package_directory

#endif  // PERMAFROST_IO_FORMATS_PACKAGE_DIRECTORY_H_

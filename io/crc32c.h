// CRC-32C, the checksum of checkpoints and of their index tables.
#ifndef PERMAFROST_IO_CRC32C_H_
#define PERMAFROST_IO_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// Returns the CRC of the concatenation of bytes with CRC `crc` and `bytes`. Runs at memory bandwidth with SSE 4.2.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

inline uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

// Returns the form in which files store a CRC, rotated and offset. A CRC over bytes that contain their own CRC would be
// weak.
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

namespace internal {
// Same, without special instructions.
uint32_t ExtendCrc32cPortably(uint32_t crc, absl::string_view bytes);
}  // namespace internal

}  // namespace permafrost

#endif  // PERMAFROST_IO_CRC32C_H_

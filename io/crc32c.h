// CRC-32C, the checksum of checkpoints and of the tables that index them.
#ifndef PERMAFROST_IO_CRC32C_H_
#define PERMAFROST_IO_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace permafrost {

// The CRC of bytes whose beginning has the CRC `crc` and whose rest is `bytes`. With SSE 4.2 at the rate of memory.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

inline uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

// How files store a CRC: a CRC of bytes that hold their own CRC says little, so it is rotated by 15 bits and shifted.
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

namespace internal {
// Without special instructions.
uint32_t ExtendCrc32cPortably(uint32_t crc, absl::string_view bytes);
}  // namespace internal

}  // namespace permafrost

#endif  // PERMAFROST_IO_CRC32C_H_

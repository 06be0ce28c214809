// Loads and appends fixed-size little-endian integers.
#ifndef PERMAFROST_IO_LITTLE_ENDIAN_H_
#define PERMAFROST_IO_LITTLE_ENDIAN_H_

#include <cstdint>
#include <string>

namespace permafrost {

inline uint32_t LoadLittleEndian32(const char* at) {
  const auto byte = [at](int i) { return uint32_t{static_cast<unsigned char>(at[i])}; };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

inline uint64_t LoadLittleEndian64(const char* at) {
  return LoadLittleEndian32(at) | uint64_t{LoadLittleEndian32(at + 4)} << 32;
}

inline void AppendLittleEndian64(uint64_t value, std::string* out) {
  for (int i = 0; i < 8; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace permafrost

#endif  // PERMAFROST_IO_LITTLE_ENDIAN_H_

// Implements copies of rows as words that may overlap.
#include "graph/base/row_copy.h"

#include <cstring>

namespace permafrost {
namespace {

template <size_t kBytes>
struct Word {
  uint64_t parts[kBytes / sizeof(uint64_t)];
};

// Copies `bytes` bytes, from sizeof(T) to twice as many, as two words that may overlap.
template <typename T>
void CopyAsTwoWords(const char* from, char* to, size_t bytes) {
  T first, last;
  std::memcpy(&first, from, sizeof(T));
  std::memcpy(&last, from + bytes - sizeof(T), sizeof(T));
  std::memcpy(to, &first, sizeof(T));
  std::memcpy(to + bytes - sizeof(T), &last, sizeof(T));
}

// Copies `count` rows of `bytes` contiguous bytes, which are `from_step` and `to_step` bytes apart.
template <typename T>
void CopyRowsAsTwoWords(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count, size_t bytes) {
  for (int64_t i = 0; i < count; ++i) CopyAsTwoWords<T>(from + i * from_step, to + i * to_step, bytes);
}

}  // namespace

void CopyByteRows(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count, size_t bytes) {
  if (bytes > 2 * sizeof(Word<64>)) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, bytes);
  } else if (bytes > sizeof(Word<64>)) {
    CopyRowsAsTwoWords<Word<64>>(from, from_step, to, to_step, count, bytes);
  } else if (bytes > sizeof(Word<32>)) {
    CopyRowsAsTwoWords<Word<32>>(from, from_step, to, to_step, count, bytes);
  } else if (bytes >= sizeof(Word<16>)) {
    CopyRowsAsTwoWords<Word<16>>(from, from_step, to, to_step, count, bytes);
  } else if (bytes >= sizeof(uint64_t)) {
    CopyRowsAsTwoWords<uint64_t>(from, from_step, to, to_step, count, bytes);
  } else if (bytes >= sizeof(uint32_t)) {
    CopyRowsAsTwoWords<uint32_t>(from, from_step, to, to_step, count, bytes);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < bytes; ++k)
        to[i * to_step + static_cast<int64_t>(k)] = from[i * from_step + static_cast<int64_t>(k)];
    }
  }
}

}  // namespace permafrost

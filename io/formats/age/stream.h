// The payload of an age file: chunks of 64 KiB, each encrypted separately, so that any of them can be read alone.
#ifndef PERMAFROST_IO_FORMATS_AGE_STREAM_H_
#define PERMAFROST_IO_FORMATS_AGE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/formats/age/crypto.h"

namespace permafrost::age {

inline constexpr size_t kPayloadNonceBytes = 16;  // Before the first chunk.
inline constexpr size_t kChunkBytes = size_t{64} << 10;
inline constexpr size_t kSealedChunkBytes = kChunkBytes + kTagBytes;

// Returns the key of the payload, derived from the file key and the nonce before the first chunk.
Key PayloadKey(const FileKey& file_key, absl::string_view nonce);

// Positions of the chunks in a file.
struct ChunkLayout {
  uint64_t first = 0;  // Offset of the first chunk.
  uint64_t chunks = 0;
  uint64_t plain_bytes = 0;

  uint64_t offset(uint64_t chunk) const { return first + chunk * kSealedChunkBytes; }
  // Returns the size of a decrypted chunk in bytes.
  size_t plain_size(uint64_t chunk) const {
    return chunk + 1 < chunks ? kChunkBytes : static_cast<size_t>(plain_bytes - chunk * kChunkBytes);
  }
  bool is_last(uint64_t chunk) const { return chunk + 1 == chunks; }
};

// Returns the layout of a file of `file_bytes` bytes with a header of `header_bytes`. Returns DataLoss if no file can
// have this size.
absl::StatusOr<ChunkLayout> LayoutOf(uint64_t file_bytes, uint64_t header_bytes);

// Returns the size of the payload, including nonce and tags.
uint64_t PayloadBytes(uint64_t plain_bytes);

void SealChunk(const Key& key, uint64_t chunk, bool is_last, absl::string_view plain, char* sealed);
// Returns false if `sealed` is not authentic for this position. REQUIRES: sealed.size() >= kTagBytes.
bool OpenChunk(const Key& key, uint64_t chunk, bool is_last, absl::string_view sealed, char* plain);

// Calls f(i) for each i in [0, count), on as many threads as there are processors and as the work justifies. Stops soon
// after f returns false. Returns true if f never returned false.
bool ForEachChunk(uint64_t count, const std::function<bool(uint64_t i)>& f);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_STREAM_H_

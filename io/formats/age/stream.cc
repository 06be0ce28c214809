// Implements the layout, encryption and decryption of chunks.
#include "io/formats/age/stream.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"

namespace permafrost::age {
namespace {

// Returns the nonce of a chunk: its number (big-endian, 11 bytes), and whether it is the last. It prevents chunks from
// being reordered, repeated, omitted or cut off undetected.
Nonce ChunkNonce(uint64_t chunk, bool is_last) {
  Nonce nonce{};
  for (size_t i = 0; i < sizeof(chunk); ++i) nonce[10 - i] = static_cast<uint8_t>(chunk >> (8 * i));
  nonce[11] = is_last ? 1 : 0;
  return nonce;
}

// State shared by the threads of one call.
struct Work {
  const std::function<bool(uint64_t)>& f;
  const uint64_t count;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};

  void Run() {
    // Takes several at a time, so that most neighbouring chunks, which share pages, are processed by the same thread.
    constexpr uint64_t kAtOnce = 8;
    while (!failed) {
      const uint64_t begin = next.fetch_add(kAtOnce);
      if (begin >= count) return;
      for (uint64_t i = begin; i < std::min(count, begin + kAtOnce) && !failed; ++i) {
        if (!f(i)) failed = true;
      }
    }
  }
};

int NumThreads(uint64_t count) {
  // A thread pays off for about a millisecond of work.
  constexpr uint64_t kChunksOfThread = 16;
  constexpr uint64_t kMaxThreads = 16;  // With more threads, memory bandwidth is the limit.
  cpu_set_t allowed;                    // The process may be restricted to fewer processors than the machine has.
  const bool is_known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const auto processors = static_cast<uint64_t>(is_known ? CPU_COUNT(&allowed) : 1);
  return static_cast<int>(std::min({count / kChunksOfThread, kMaxThreads, processors}));
}

}  // namespace

Key PayloadKey(const FileKey& file_key, absl::string_view nonce) { return Hkdf(file_key.bytes(), nonce, "payload"); }

absl::StatusOr<ChunkLayout> LayoutOf(uint64_t file_bytes, uint64_t header_bytes) {
  const uint64_t least = header_bytes + kPayloadNonceBytes + kTagBytes;
  if (file_bytes < least) {
    return absl::DataLossError(
        absl::StrCat("the file ends at byte ", file_bytes, ", expected at least ", least, ": it is truncated"));
  }
  ChunkLayout layout;
  layout.first = header_bytes + kPayloadNonceBytes;
  const uint64_t sealed = file_bytes - layout.first;
  layout.chunks = (sealed + kSealedChunkBytes - 1) / kSealedChunkBytes;
  const uint64_t last = sealed - (layout.chunks - 1) * kSealedChunkBytes;
  if (last < kTagBytes || (last == kTagBytes && layout.chunks > 1)) {
    return absl::DataLossError(absl::StrCat("the file ends at byte ", file_bytes, ", with ", last,
                                            " bytes of a last chunk, expected at least ", kTagBytes + 1,
                                            ": it is truncated"));
  }
  layout.plain_bytes = sealed - layout.chunks * kTagBytes;
  return layout;
}

uint64_t PayloadBytes(uint64_t plain_bytes) {
  const uint64_t chunks = std::max<uint64_t>(1, (plain_bytes + kChunkBytes - 1) / kChunkBytes);
  return kPayloadNonceBytes + plain_bytes + chunks * kTagBytes;
}

void SealChunk(const Key& key, uint64_t chunk, bool is_last, absl::string_view plain, char* sealed) {
  Seal(key, ChunkNonce(chunk, is_last), plain, sealed);
}

bool OpenChunk(const Key& key, uint64_t chunk, bool is_last, absl::string_view sealed, char* plain) {
  return Open(key, ChunkNonce(chunk, is_last), sealed, plain);
}

bool ForEachChunk(uint64_t count, const std::function<bool(uint64_t i)>& f) {
  Work work{f, count};
  std::vector<pthread_t> threads;
  // If the system cannot create more threads, the call only takes longer.
  for (int i = 1; i < NumThreads(count); ++i) {
    pthread_t thread;
    const auto run = [](void* shared) -> void* {
      static_cast<Work*>(shared)->Run();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, run, &work) != 0) break;
    threads.push_back(thread);
  }
  work.Run();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  return !work.failed;
}

}  // namespace permafrost::age

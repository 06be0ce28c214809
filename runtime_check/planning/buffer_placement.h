// Places buffers with known lifetimes in one block of memory.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_BUFFER_PLACEMENT_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_BUFFER_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace permafrost {

inline constexpr int64_t kBufferAlignment = 64;

struct Buffer {
  int64_t bytes = 0;
  // Lifetime, as positions in the order of the nodes: the buffer is written at `first` and last read at `last`. Two
  // buffers that share a position must not overlap.
  int first = 0;
  int last = 0;
  int64_t offset = 0;  // The result, a multiple of kBufferAlignment.
};

// Chooses the offsets and returns the size of the block. ResourceExhausted if the sizes exceed 2^63 bytes. O(n^2) for a
// few thousand buffers, O(n log n) for more.
absl::StatusOr<int64_t> PlaceBuffers(std::vector<Buffer>* buffers);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_BUFFER_PLACEMENT_H_

// Two strategies for placing buffers: by size, which packs best, and by time, which is fast for any number.
#include "runtime_check/planning/buffer_placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"

namespace permafrost {
namespace {

// Above this number, placing by size takes more than a few milliseconds.
constexpr size_t kMostBySize = 4096;

bool LiveTogether(const Buffer& a, const Buffer& b) { return a.first <= b.last && b.first <= a.last; }

// Returns the indices of the keys in ascending order of the keys; stable for equal keys.
std::vector<size_t> OrderBy(const std::vector<int64_t>& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  absl::c_sort(order, [&](size_t a, size_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  return order;
}

// Places the largest buffers first, each at the lowest offset that no buffer with an overlapping lifetime uses.
int64_t PlaceBySize(std::vector<Buffer>* buffers) {
  std::vector<int64_t> sizes;
  for (const Buffer& buffer : *buffers) sizes.push_back(-buffer.bytes);
  const std::vector<size_t> order = OrderBy(sizes);
  std::vector<size_t> placed;  // By offset.
  int64_t total = 0;
  for (const size_t index : order) {
    Buffer& buffer = (*buffers)[index];
    int64_t offset = 0;
    for (const size_t other_index : placed) {
      const Buffer& other = (*buffers)[other_index];
      if (!LiveTogether(buffer, other)) continue;
      if (offset + buffer.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    buffer.offset = offset;
    total = std::max(total, offset + buffer.bytes);
    const auto place = std::upper_bound(placed.begin(), placed.end(), offset, [&](int64_t at, size_t other_index) {
      return at < (*buffers)[other_index].offset;
    });
    placed.insert(place, index);
  }
  return total;
}

// The free pieces of a growing block, with adjacent pieces merged. In sorted vectors, because there are few at any
// time.
class FreePieces {
 public:
  // Takes the smallest piece that is large enough, otherwise extends the block.
  int64_t Take(int64_t bytes) {
    const auto fit = std::lower_bound(by_size_.begin(), by_size_.end(), Pair{bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      Remove({offset, size});
      if (size > bytes) Insert({offset + bytes, size - bytes});
      return offset;
    }
    int64_t offset = end_;
    if (!by_offset_.empty()) {
      const Pair last = by_offset_.back();
      if (last.first + last.second == end_) {
        offset = last.first;
        Remove(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void Give(int64_t offset, int64_t bytes) {
    const auto next = std::lower_bound(by_offset_.begin(), by_offset_.end(), Pair{offset, 0});
    const Pair after = next != by_offset_.end() ? *next : Pair{-1, 0};
    const Pair before = next != by_offset_.begin() ? next[-1] : Pair{-1, 0};
    if (after.first == offset + bytes) {
      bytes += after.second;
      Remove(after);
    }
    if (before.first >= 0 && before.first + before.second == offset) {
      offset = before.first;
      bytes += before.second;
      Remove(before);
    }
    Insert({offset, bytes});
  }

  int64_t end() const { return end_; }

 private:
  using Pair = std::pair<int64_t, int64_t>;

  // Inserts a piece, given as offset and size.
  void Insert(Pair piece) {
    by_offset_.insert(std::lower_bound(by_offset_.begin(), by_offset_.end(), piece), piece);
    const Pair turned{piece.second, piece.first};
    by_size_.insert(std::lower_bound(by_size_.begin(), by_size_.end(), turned), turned);
  }
  void Remove(Pair piece) {
    by_offset_.erase(std::lower_bound(by_offset_.begin(), by_offset_.end(), piece));
    by_size_.erase(std::lower_bound(by_size_.begin(), by_size_.end(), Pair{piece.second, piece.first}));
  }

  std::vector<Pair> by_offset_;  // Offset and size.
  std::vector<Pair> by_size_;    // Size and offset.
  int64_t end_ = 0;
};

// Simulates an allocator during the run, with best fit.
int64_t PlaceByTime(std::vector<Buffer>* buffers) {
  std::vector<int64_t> starts;
  for (const Buffer& buffer : *buffers) starts.push_back(buffer.first);
  const std::vector<size_t> order = OrderBy(starts);
  using Ending = std::pair<int, size_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<Ending>> live;
  FreePieces pieces;
  for (const size_t index : order) {
    Buffer& buffer = (*buffers)[index];
    while (!live.empty() && live.top().first < buffer.first) {
      const Buffer& ended = (*buffers)[live.top().second];
      pieces.Give(ended.offset, ended.bytes);
      live.pop();
    }
    if (buffer.bytes == 0) continue;
    buffer.offset = pieces.Take(buffer.bytes);
    live.push({buffer.last, index});
  }
  return pieces.end();
}

}  // namespace

absl::StatusOr<int64_t> PlaceBuffers(std::vector<Buffer>* buffers) {
  // Rounded up, so that every sum of sizes is a multiple of the alignment.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() - kBufferAlignment;
  int64_t sum = 0;
  std::vector<Buffer> rounded = *buffers;
  for (Buffer& buffer : rounded) {
    buffer.offset = 0;
    if (buffer.bytes > kMost) return absl::ResourceExhaustedError("a buffer exceeds 2^63 bytes");
    buffer.bytes = (buffer.bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    if (__builtin_add_overflow(sum, buffer.bytes, &sum)) {
      return absl::ResourceExhaustedError("all buffers together exceed 2^63 bytes");
    }
  }
  std::vector<Buffer> by_time = rounded;
  int64_t total = PlaceByTime(&by_time);
  if (rounded.size() <= kMostBySize) {
    const int64_t total_by_size = PlaceBySize(&rounded);
    if (total_by_size <= total) {
      total = total_by_size;
      by_time.swap(rounded);
    }
  }
  for (size_t i = 0; i < buffers->size(); ++i) (*buffers)[i].offset = by_time[i].offset;
  return total;
}

}  // namespace permafrost

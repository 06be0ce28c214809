// Two ways to place buffers: by size, which packs best, and by time, which is fast for any number.
#include "runtime_check/planner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"

namespace permafrost {
namespace {

// Above this number placing by size takes more than a few milliseconds.
constexpr size_t kMostBySize = 4096;

bool LiveTogether(const Buffer& a, const Buffer& b) { return a.first <= b.last && b.first <= a.last; }

// The largest first, each at the lowest place where no buffer that lives at the same time is in the way.
int64_t PlaceBySize(std::vector<Buffer>* buffers) {
  std::vector<size_t> order(buffers->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*buffers)[a].bytes > (*buffers)[b].bytes; });
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

// The free pieces of a block that can grow, neighbours merged.
class FreePieces {
 public:
  // The smallest piece that suffices, else the end of the block.
  int64_t Take(int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      Remove(offset);
      if (size > bytes) Insert(offset + bytes, size - bytes);
      return offset;
    }
    int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [last_offset, last_size] = *by_offset_.rbegin();
      if (last_offset + last_size == end_) {
        offset = last_offset;
        Remove(last_offset);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void Give(int64_t offset, int64_t bytes) {
    const auto next = by_offset_.find(offset + bytes);
    if (next != by_offset_.end()) {
      bytes += next->second;
      Remove(next->first);
    }
    auto previous = by_offset_.lower_bound(offset);
    if (previous != by_offset_.begin()) {
      --previous;
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        Remove(offset);
      }
    }
    Insert(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  void Insert(int64_t offset, int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void Remove(int64_t offset) {
    const auto found = by_offset_.find(offset);
    by_size_.erase({found->second, offset});
    by_offset_.erase(found);
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

// As an allocator would while the nodes run, with best fit.
int64_t PlaceByTime(std::vector<Buffer>* buffers) {
  std::vector<size_t> order(buffers->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*buffers)[a].first < (*buffers)[b].first; });
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
    if (buffer.bytes > kMost) return absl::InvalidArgumentError("a buffer exceeds 2^63 bytes");
    buffer.bytes = (buffer.bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    if (__builtin_add_overflow(sum, buffer.bytes, &sum)) {
      return absl::InvalidArgumentError("all buffers together exceed 2^63 bytes");
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

// Computes ranges of float tensors.
#include "transforms/rewrites/float_ranges.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/base/multiversion.h"

namespace permafrost {
namespace {

// Below this number of elements a thread costs more than it saves.
constexpr size_t kElementsPerThread = size_t{1} << 16;
constexpr size_t kLanes = 32;
constexpr float kLargest = std::numeric_limits<float>::max();

// Maps the bits of a float to an integer of the same order, with -0 directly below 0, or back. Every instruction set
// has integer minimum and maximum, while those of floats take several steps because of NaN.
inline PF_INLINE int32_t InOrder(int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }
inline float FromOrder(int32_t ordered) {
  const int32_t bits = InOrder(ordered);
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Accumulators {
  int32_t min[kLanes];
  int32_t max[kLanes];
  uint32_t nearest_to_zero[kLanes];  // In integer order, relative to -0: 0 and 1 are the zeros.
};

// Folds one block into the lanes.
inline PF_INLINE void Accumulate(const int32_t* block, Accumulators* into) {
  Accumulators lanes = *into;
  for (size_t start = 0; start < kBlock; start += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const int32_t value = InOrder(block[start + i]);
      const uint32_t from_zero = static_cast<uint32_t>(value) + 1;
      lanes.min[i] = value < lanes.min[i] ? value : lanes.min[i];
      lanes.max[i] = value > lanes.max[i] ? value : lanes.max[i];
      lanes.nearest_to_zero[i] = from_zero < lanes.nearest_to_zero[i] ? from_zero : lanes.nearest_to_zero[i];
    }
  }
  *into = lanes;
}

void AddValue(float value, FloatRange* range) {
  if (!(__builtin_fabsf(value) <= kLargest)) {
    range->all_finite = false;
    return;
  }
  range->has_zero |= value == 0.0f;
  range->min = !range->any_finite || value < range->min ? value : range->min;
  range->max = !range->any_finite || value > range->max ? value : range->max;
  range->any_finite = true;
}

void AddRange(const FloatRange& part, FloatRange* range) {
  range->all_finite &= part.all_finite;
  range->has_zero |= part.has_zero;
  if (!part.any_finite) return;
  range->min = range->any_finite ? std::min(range->min, part.min) : part.min;
  range->max = range->any_finite ? std::max(range->max, part.max) : part.max;
  range->any_finite = true;
}

// Returns the range of the values, computed element by element.
FloatRange FindRangeSlowly(UnalignedSpan<float> values, size_t start, size_t end) {
  FloatRange range;
  for (; start < end; ++start) AddValue(values[start], &range);
  return range;
}

FloatRange FindRangeOfPiece(UnalignedSpan<float> values, size_t start, size_t end) {
  Accumulators lanes;
  std::fill_n(lanes.min, kLanes, std::numeric_limits<int32_t>::max());
  std::fill_n(lanes.max, kLanes, std::numeric_limits<int32_t>::min());
  std::fill_n(lanes.nearest_to_zero, kLanes, std::numeric_limits<uint32_t>::max());
  alignas(64) int32_t block[kBlock];
  size_t next = start;
  Multiversion([&]() PF_INLINE {
    for (; end - next >= kBlock; next += kBlock) {
      std::memcpy(block, values.bytes() + next * sizeof(float), sizeof(block));
      Accumulate(block, &lanes);
    }
  });
  FloatRange range = FindRangeSlowly(values, next, end);
  if (next == start) return range;
  FloatRange blocks;
  blocks.any_finite = true;
  blocks.min = FromOrder(*std::min_element(lanes.min, lanes.min + kLanes));
  blocks.max = FromOrder(*std::max_element(lanes.max, lanes.max + kLanes));
  blocks.has_zero = *std::min_element(lanes.nearest_to_zero, lanes.nearest_to_zero + kLanes) <= 1;
  // NaN and infinity are beyond the finite values in this order. Both are rare, so the range is then computed again.
  if (!(blocks.min >= -kLargest && blocks.max <= kLargest)) return FindRangeSlowly(values, start, end);
  AddRange(blocks, &range);
  return range;
}

}  // namespace

void ForPieces(size_t count, int num_threads, const std::function<void(size_t start, size_t end)>& f) {
  const size_t wanted = std::min<size_t>(std::max(num_threads, 1), count / kElementsPerThread);
  if (wanted <= 1) {
    f(0, count);
    return;
  }
  const size_t blocks = (count + kBlock - 1) / kBlock;
  const size_t piece = (blocks + wanted - 1) / wanted * kBlock;
  std::vector<std::thread> threads;
  for (size_t start = piece; start < count; start += piece) {
    threads.emplace_back(f, start, std::min(start + piece, count));
  }
  f(0, std::min(piece, count));
  for (std::thread& thread : threads) thread.join();
}

FloatRange FindRange(UnalignedSpan<float> values, ThreadTeam* team) {
  std::mutex mutex;
  FloatRange range;
  team->ForPieces(values.size(), [&](size_t start, size_t end) {
    const FloatRange part = FindRangeOfPiece(values, start, end);
    const std::lock_guard<std::mutex> lock(mutex);
    AddRange(part, &range);
  });
  return range;
}

}  // namespace permafrost

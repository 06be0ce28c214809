// Ranges of float tensors.
#include "transforms/rewrites/float_ranges.h"

#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/multiversion.h"

namespace permafrost {
namespace {

// Below this many elements a thread costs more than it saves.
constexpr size_t kElementsPerThread = size_t{1} << 16;
constexpr size_t kLanes = 32;
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Accumulators {
  float min[kLanes];
  float max[kLanes];
  uint32_t zeros[kLanes];
  uint32_t non_finite[kLanes];
};

// Folds one block into the lanes. Elements that are not finite take part in neither minimum nor maximum.
inline PF_INLINE void Accumulate(const float* block, Accumulators* into) {
  Accumulators lanes = *into;
  for (size_t start = 0; start < kBlock; start += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const float value = block[start + i];
      const bool is_finite = __builtin_fabsf(value) <= kLargest;
      const float low = is_finite ? value : kInfinity;
      const float high = is_finite ? value : -kInfinity;
      lanes.min[i] = low < lanes.min[i] ? low : lanes.min[i];
      lanes.max[i] = high > lanes.max[i] ? high : lanes.max[i];
      lanes.zeros[i] |= value == 0.0f ? 1 : 0;
      lanes.non_finite[i] |= is_finite ? 0 : 1;
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

FloatRange FindRangeOfPiece(UnalignedSpan<float> values, size_t start, size_t end) {
  Accumulators lanes;
  for (size_t i = 0; i < kLanes; ++i) {
    lanes.min[i] = kInfinity;
    lanes.max[i] = -kInfinity;
    lanes.zeros[i] = lanes.non_finite[i] = 0;
  }
  alignas(64) float block[kBlock];
  FloatRange range;
  Multiversion([&]() PF_INLINE {
    for (; end - start >= kBlock; start += kBlock) {
      LoadBlock(values, start, block);
      Accumulate(block, &lanes);
    }
  });
  for (; start < end; ++start) AddValue(values[start], &range);
  for (size_t i = 0; i < kLanes; ++i) {
    FloatRange lane;
    lane.min = lanes.min[i];
    lane.max = lanes.max[i];
    lane.any_finite = lanes.min[i] <= lanes.max[i];
    lane.has_zero = lanes.zeros[i] != 0;
    lane.all_finite = lanes.non_finite[i] == 0;
    AddRange(lane, &range);
  }
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

// The random generator of TensorFlow and its distributions. The numbers are bit-identical to TensorFlow's.
//
// The bits come from the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
// as easy as 1, 2, 3", 2011): block number n of 128 bits is a function of n and a key. Any part of a stream can be
// computed without the preceding part.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_PHILOX_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_PHILOX_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// Minimum number of groups per task.
constexpr int64_t kGrainGroups = 1 << 11;
// Blocks that TensorFlow reserves per number, even if it needs fewer.
constexpr uint64_t kBlocksPerNumber = 256;

using Block = std::array<uint32_t, 4>;

// A stream of blocks. Block numbers have 128 bits: `upper` and `lower` are the start of the stream.
class Philox {
 public:
  Philox(uint64_t key, uint64_t upper, uint64_t lower = 0) : key_(key), upper_(upper), lower_(lower) {}

  // Returns block `number` of the stream.
  Block operator()(uint64_t number) const {
    const uint64_t low = lower_ + number, high = upper_ + (low < lower_ ? 1 : 0);
    Block block = {Low(low), High(low), Low(high), High(high)};
    uint32_t key[2] = {Low(key_), High(key_)};
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * block[0], product1 = uint64_t{0xCD9E8D57} * block[2];
      block = {High(product1) ^ block[1] ^ key[0], Low(product1), High(product0) ^ block[3] ^ key[1], Low(product0)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return block;
  }

 private:
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  uint64_t key_, upper_, lower_;
};

// Returns a uniform number in [0, 1): the bits are the fraction of a number in [1, 2), from which 1 is subtracted.
inline float UnitFloat(uint32_t bits) {
  const uint32_t pattern = uint32_t{127} << 23 | (bits & 0x7fffff);
  float value;
  std::memcpy(&value, &pattern, sizeof(value));
  return value - 1;
}

inline double UnitDouble(uint32_t high, uint32_t low) {
  const uint64_t pattern = uint64_t{1023} << 52 | uint64_t{high & 0xfffff} << 32 | low;
  double value;
  std::memcpy(&value, &pattern, sizeof(value));
  return value - 1;
}

// Returns two normal numbers computed from two uniform ones (Box-Muller transform).
template <typename T>
std::array<T, 2> NormalPair(T radius, T angle) {
  const T length = std::sqrt(T{-2} * std::log(std::max(radius, static_cast<T>(1e-7f))));
  const T turn = static_cast<T>(2 * M_PI * angle);
  return {std::sin(turn) * length, std::cos(turn) * length};
}

// The type in which numbers of type T are computed; float for 16-bit floats.
template <typename T>
using ComputedIn = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
T Stored(ComputedIn<T> x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(x);
  } else {
    return x;
  }
}

// How many numbers one group of blocks gives.
template <typename T>
constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;

template <typename T>
std::array<T, kGroup<T>> UniformGroup(const Block& block) {
  if constexpr (std::is_same_v<T, double>) {
    return {UnitDouble(block[0], block[1]), UnitDouble(block[2], block[3])};
  } else {
    std::array<T, 4> result;
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, Half>) {
        const Half shifted = {static_cast<uint16_t>(15 << 10 | (block[i] & 0x3ff))};
        result[i] = ToHalf(ToFloat(shifted) - 1);
      } else if constexpr (std::is_same_v<T, BFloat16>) {
        const BFloat16 shifted = {static_cast<uint16_t>(127 << 7 | (block[i] & 0x7f))};
        result[i] = ToBFloat16(ToFloat(shifted) - 1);
      } else {
        result[i] = UnitFloat(block[i]);
      }
    }
    return result;
  }
}

template <typename T>
std::array<T, kGroup<T>> NormalGroup(const Block& block) {
  if constexpr (std::is_same_v<T, double>) {
    return NormalPair(UnitDouble(block[0], block[1]), UnitDouble(block[2], block[3]));
  } else {
    const auto first = NormalPair(UnitFloat(block[0]), UnitFloat(block[1]));
    const auto second = NormalPair(UnitFloat(block[2]), UnitFloat(block[3]));
    return {Stored<T>(first[0]), Stored<T>(first[1]), Stored<T>(second[0]), Stored<T>(second[1])};
  }
}

// Returns normal numbers within 2 standard deviations. Numbers beyond are redrawn from the next blocks.
template <typename T>
std::array<T, kGroup<T>> TruncatedGroup(const Philox& bits, uint64_t block_number) {
  std::array<T, kGroup<T>> result;
  int have = 0;
  while (true) {
    const Block block = bits(block_number++);
    ComputedIn<T> candidates[4];
    int count = 0;
    const auto add = [&](const auto& pair) {
      candidates[count++] = pair[0];
      candidates[count++] = pair[1];
    };
    if constexpr (std::is_same_v<T, double>) {
      add(NormalPair(UnitDouble(block[0], block[1]), UnitDouble(block[2], block[3])));
    } else {
      add(NormalPair(UnitFloat(block[0]), UnitFloat(block[1])));
      add(NormalPair(UnitFloat(block[2]), UnitFloat(block[3])));
    }
    for (int i = 0; i < count; ++i) {
      if (!(std::abs(candidates[i]) < 2)) continue;
      result[have++] = Stored<T>(candidates[i]);
      if (have == kGroup<T>) return result;
    }
  }
}

// Fills the output. group(number) returns the numbers of group `number`; the last group may be truncated.
template <typename T, typename Group>
void FillGroups(ComputeContext* context, Group group) {
  T* output = context->output<T>(0);
  const int64_t count = context->output_shape(0).num_elements();
  const int64_t groups = count / kGroup<T> + (count % kGroup<T> != 0);
  context->threads().ParallelFor(groups, kGrainGroups, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::array<T, kGroup<T>> numbers = group(static_cast<uint64_t>(i));
      std::copy_n(numbers.data(), std::min<int64_t>(kGroup<T>, count - i * kGroup<T>), output + i * kGroup<T>);
    }
  });
}

// Returns the two or four integers of a block, which use all bits of the type.
template <typename T>
std::array<T, kGroup<T>> IntegerGroup(const Block& block) {
  std::array<T, kGroup<T>> result;
  for (int i = 0; i < kGroup<T>; ++i) {
    if constexpr (sizeof(T) == 8) {
      result[i] = static_cast<T>(uint64_t{block[2 * i]} | uint64_t{block[2 * i + 1]} << 32);
    } else {
      result[i] = static_cast<T>(block[i]);
    }
  }
  return result;
}

// Returns integers in [lowest, end): the bits modulo the distance. TensorFlow uses this although it favours small
// numbers.
// REQUIRES: lowest < end.
template <typename T>
std::array<T, kGroup<T>> IntegerGroupBetween(const Block& block, T lowest, T end) {
  using Unsigned = std::make_unsigned_t<T>;
  const Unsigned range = static_cast<Unsigned>(end) - static_cast<Unsigned>(lowest);
  std::array<T, kGroup<T>> result;
  const std::array<Unsigned, kGroup<T>> bits = IntegerGroup<Unsigned>(block);
  for (int i = 0; i < kGroup<T>; ++i) {
    result[i] = static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(lowest) + bits[i] % range));
  }
  return result;
}

enum class Distribution { kUniform, kNormal, kTruncated };

// Fills output 0, of floats, from the stream, with the numbers of TensorFlow's ops that are given a key and a counter.
template <Distribution distribution>
void FillFloats(ComputeContext* context, const Philox& bits) {
  DispatchOn<float, double, Half, BFloat16>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    FillGroups<T>(context, [&](uint64_t group) {
      if constexpr (distribution == Distribution::kUniform) {
        return UniformGroup<T>(bits(group));
      } else if constexpr (distribution == Distribution::kNormal) {
        return NormalGroup<T>(bits(group));
      } else {
        return TruncatedGroup<T>(bits, group * (kBlocksPerNumber * kGroup<T> / 4));
      }
    });
  });
}

// Fills output 0 with integers that use all bits of their type.
inline void FillIntegers(ComputeContext* context, const Philox& bits) {
  DispatchOn<int32_t, int64_t, uint32_t, uint64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    FillGroups<T>(context, [&](uint64_t group) { return IntegerGroup<T>(bits(group)); });
  });
}

// Fills output 0 with integers between the last two inputs, 'minval' and 'maxval'. InvalidArgument for an empty range.
// REQUIRES: both are scalars of the output's type.
inline absl::Status FillIntegersBetween(ComputeContext* context, const Philox& bits) {
  const int last = context->num_inputs() - 1;
  absl::Status status;
  DispatchOn<int32_t, int64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T lowest = *context->input<T>(last - 1), end = *context->input<T>(last);
    if (lowest >= end) {
      status = absl::InvalidArgumentError(
          absl::StrCat("'minval' is ", lowest, " and 'maxval' ", end, ", expected a greater 'maxval'"));
      return;
    }
    FillGroups<T>(context, [&](uint64_t group) { return IntegerGroupBetween(bits(group), lowest, end); });
  });
  return status;
}

// Returns the seed of a node without one: the 64-bit FNV hash of its name, equal in every process.
uint64_t SeedOfName(absl::string_view name);

// Takes the blocks for so many numbers from the stream that the runs of a session share at this node, and returns the
// number of the first.
absl::StatusOr<uint64_t> TakeBlocks(ComputeContext* context, uint64_t numbers);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_PHILOX_H_

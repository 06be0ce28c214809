// Random numbers: RandomUniform, RandomUniformInt, RandomStandardNormal and TruncatedNormal.
//
// The bits come from the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
// as easy as 1, 2, 3", 2011): block number n of 128 bits is a function of n and a key. The attributes seed and seed2
// are the key and the upper half of the block numbers, and numbers are taken from blocks as TensorFlow takes them, so
// that seeded nodes give its numbers. Nodes without seeds are seeded by their name: each session gives the same
// numbers, and a graph that is compared with a rewritten one gives what the other does as long as the node keeps its
// name. Runs of a session continue where the last one ended.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

constexpr int64_t kGrainGroups = 1 << 11;
// Blocks that a run takes for each number, however many it needs.
constexpr uint64_t kBlocksPerNumber = 256;

using Block = std::array<uint32_t, 4>;

class Philox {
 public:
  Philox(uint64_t seed, uint64_t seed2) : key_(seed), upper_(seed2) {}

  // Block `number` of the stream.
  Block operator()(uint64_t number) const {
    Block block = {Low(number), High(number), Low(upper_), High(upper_)};
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

  uint64_t key_, upper_;
};

// How many blocks the runs of a session have taken.
class RandomStream : public RuntimeObject {
 public:
  static constexpr const char* kKind = "stream of random numbers";
  absl::string_view kind() const override { return kKind; }

  uint64_t taken = 0;
};

struct RandomState : KernelState {
  uint64_t seed = 0, seed2 = 0;
};

// The 64-bit hash of Fowler, Noll and Vo: the same in every process.
uint64_t SeedOf(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

absl::Status Prepare(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerVectorInput(context, 0));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape(dims)));
  auto state = std::make_unique<RandomState>();
  PF_ASSIGN_OR_RETURN(const int64_t seed, IntAttr(context->node(), "seed"));
  PF_ASSIGN_OR_RETURN(const int64_t seed2, IntAttr(context->node(), "seed2"));
  state->seed = static_cast<uint64_t>(seed);
  state->seed2 = static_cast<uint64_t>(seed2);
  if (seed == 0 && seed2 == 0) state->seed = SeedOf(context->node().name());
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareIntegers(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 0));
  return Prepare(context);
}

// The number of the first block of this run.
absl::StatusOr<uint64_t> TakeBlocks(ComputeContext* context) {
  if (context->resources() == nullptr) return 0;
  // Nodes of different functions may have one name, but never one address.
  const std::string name = absl::StrCat("random numbers of ", reinterpret_cast<uintptr_t>(&context->node()));
  if (context->resources()->Find(name) == nullptr) {
    context->resources()->Add(name, std::make_shared<RandomStream>());
  }
  PF_ASSIGN_OR_RETURN(const auto stream, ObjectAs<RandomStream>(context->resources()->Find(name)));
  const uint64_t first = stream->taken;
  stream->taken += kBlocksPerNumber * static_cast<uint64_t>(context->output_shape(0).num_elements());
  return first;
}

// --- From bits to numbers
// ---------------------------------------------------------------------------------------------

// A number in [1, 2) has the bits as its fraction; less 1 it is uniform in [0, 1).
float UnitFloat(uint32_t bits) {
  const uint32_t pattern = uint32_t{127} << 23 | (bits & 0x7fffff);
  float value;
  std::memcpy(&value, &pattern, sizeof(value));
  return value - 1;
}

double UnitDouble(uint32_t high, uint32_t low) {
  const uint64_t pattern = uint64_t{1023} << 52 | uint64_t{high & 0xfffff} << 32 | low;
  double value;
  std::memcpy(&value, &pattern, sizeof(value));
  return value - 1;
}

// Two normal numbers from two uniform ones (Box and Muller).
template <typename T>
std::array<T, 2> NormalPair(T radius, T angle) {
  const T length = std::sqrt(T{-2} * std::log(std::max(radius, static_cast<T>(1e-7f))));
  const T turn = static_cast<T>(2 * M_PI * angle);
  return {std::sin(turn) * length, std::cos(turn) * length};
}

// What 16-bit floats are computed in.
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

// Numbers made from one group of blocks.
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

// Normal numbers of at most 2 deviations: those beyond are drawn again, from the next blocks.
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

// --- Kernels
// -----------------------------------------------------------------------------------------------------------

// group(number) makes the numbers of group `number`; the last group may be cut.
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

enum class Distribution { kUniform, kNormal, kTruncated };

template <Distribution distribution>
absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<RandomState>();
  PF_ASSIGN_OR_RETURN(const uint64_t first, TakeBlocks(context));
  const Philox bits(state.seed, state.seed2);
  DispatchOn<float, double, Half, BFloat16>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    FillGroups<T>(context, [&](uint64_t group) {
      if constexpr (distribution == Distribution::kUniform) {
        return UniformGroup<T>(bits(first + group));
      } else if constexpr (distribution == Distribution::kNormal) {
        return NormalGroup<T>(bits(first + group));
      } else {
        // Each group has as many blocks to itself as TensorFlow sets aside for it.
        return TruncatedGroup<T>(bits, first + group * (kBlocksPerNumber * kGroup<T> / 4));
      }
    });
  });
  return absl::OkStatus();
}

absl::Status ComputeIntegers(ComputeContext* context) {
  const auto& state = context->state<RandomState>();
  absl::Status status;
  DispatchOn<int32_t, int64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Unsigned = std::make_unsigned_t<T>;
    const T lowest = *context->input<T>(1), end = *context->input<T>(2);
    if (lowest >= end) {
      if (context->output_shape(0).num_elements() == 0) return;
      status = absl::InvalidArgumentError(
          absl::StrCat("'minval' is ", lowest, " and 'maxval' ", end, ", expected a greater 'maxval'"));
      return;
    }
    const absl::StatusOr<uint64_t> first = TakeBlocks(context);
    if (!first.ok()) {
      status = first.status();
      return;
    }
    const Unsigned range = static_cast<Unsigned>(end) - static_cast<Unsigned>(lowest);
    const Philox bits(state.seed, state.seed2);
    FillGroups<T>(context, [&](uint64_t group) {
      const Block block = bits(*first + group);
      std::array<T, kGroup<T>> result;
      for (int i = 0; i < kGroup<T>; ++i) {
        Unsigned drawn;
        if constexpr (sizeof(T) == 8) {
          drawn = uint64_t{block[2 * i]} | uint64_t{block[2 * i + 1]} << 32;
        } else {
          drawn = block[i];
        }
        result[i] = static_cast<T>(static_cast<Unsigned>(lowest) + drawn % range);
      }
      return result;
    });
  });
  return status;
}

}  // namespace

DEFINE_KERNEL(RandomUniform) {
  return Kernel("random numbers in [0, 1), those of TensorFlow where a seed is set")
      .TypeNumbers("dtype", FloatingTypes())
      .Prepare(Prepare)
      .Compute(Compute<Distribution::kUniform>);
}

DEFINE_KERNEL(RandomUniformInt) {
  return Kernel("random integers in [minval, maxval), those of TensorFlow where a seed is set")
      .TypeNumbers("Tout", IndexTypes())
      .Prepare(PrepareIntegers)
      .Compute(ComputeIntegers);
}

DEFINE_KERNEL(RandomStandardNormal) {
  return Kernel("random numbers of mean 0 and deviation 1, those of TensorFlow where a seed is set")
      .TypeNumbers("dtype", FloatingTypes())
      .Prepare(Prepare)
      .Compute(Compute<Distribution::kNormal>);
}

DEFINE_KERNEL(TruncatedNormal) {
  return Kernel("as RandomStandardNormal, without numbers of 2 or more; those of TensorFlow where a seed is set")
      .TypeNumbers("dtype", FloatingTypes())
      .Prepare(Prepare)
      .Compute(Compute<Distribution::kTruncated>);
}

}  // namespace permafrost

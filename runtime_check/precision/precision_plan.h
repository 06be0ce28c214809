// What a delegate computes with, node by node, and what is known of the values that it will see.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_PLAN_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace permafrost {

// Of products and of what lies between the nodes; sums are of more bits, and the interface of a model is as it was.
// kBf16x3 takes each float as the sum of two of bfloat16, and three products for one: large convolutions are within
// 2^-16 of kF32, to which it falls back for all else. Files hold the numbers.
enum class Precision : uint8_t { kF32, kBf16, kInt8, kBf16x3 };

// From the most exact to the fastest.
constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBf16x3, Precision::kBf16, Precision::kInt8};

absl::string_view NameOf(Precision precision);
// The one of that name, if there is one.
std::optional<Precision> PrecisionNamed(absl::string_view name);

// What calibration found out about the values of a tensor.
struct TensorStatistics {
  float least = 0, most = 0;  // Finite; least <= most.
  // Values are worth telling apart up to this magnitude; those beyond it may become it. 0 where all are zero.
  float bound = 0;
  std::vector<float> means;  // Of each element of the last dimension, over all others.

  friend bool operator==(const TensorStatistics& a, const TensorStatistics& b) {
    return a.least == b.least && a.most == b.most && a.bound == b.bound && a.means == b.means;
  }
};

struct PrecisionPlan {
  Precision precision = Precision::kF32;   // Of the nodes that are not listed.
  std::map<std::string, Precision> nodes;  // By name.
  // By the name of the node whose first output it is. Without them nothing is computed in int8.
  std::map<std::string, TensorStatistics> tensors;

  Precision Of(absl::string_view node) const {
    const auto found = nodes.find(std::string(node));
    return found == nodes.end() ? precision : found->second;
  }
  const TensorStatistics* StatisticsOf(absl::string_view node) const {
    const auto found = tensors.find(std::string(node));
    return found == tensors.end() ? nullptr : &found->second;
  }
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_PLAN_H_

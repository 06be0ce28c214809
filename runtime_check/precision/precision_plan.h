// A precision plan: the precision of each node, and statistics of the values for quantisation.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_PLAN_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_PRECISION_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace permafrost {

// Precision of products and of values between nodes. Sums have more bits, and the model's inputs and outputs are
// unchanged. kBf16x3 represents each float as the sum of two bfloat16 numbers, and computes three products for one.
// Large convolutions are within 2^-16 of kF32; all other nodes fall back to kF32. The numbers are stored in files.
enum class Precision : uint8_t { kF32, kBf16, kInt8, kBf16x3 };

// All precisions, from the most accurate to the fastest.
constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBf16x3, Precision::kBf16, Precision::kInt8};

absl::string_view NameOf(Precision precision);
// Returns the precision with that name, if there is one.
std::optional<Precision> PrecisionNamed(absl::string_view name);

// Calibration results for a tensor.
struct TensorStatistics {
  float least = 0, most = 0;  // Minimum and maximum; finite.
  // Magnitude up to which values must be distinguished; larger values may be clamped to it. 0 if all values are zero.
  float bound = 0;
  std::vector<float> means;  // Mean of each element of the last dimension, over all others.

  friend bool operator==(const TensorStatistics& a, const TensorStatistics& b) {
    return a.least == b.least && a.most == b.most && a.bound == b.bound && a.means == b.means;
  }
};

struct PrecisionPlan {
  Precision precision = Precision::kF32;   // For nodes that are not listed.
  std::map<std::string, Precision> nodes;  // By name.
  // By the name of the node whose first output is the tensor. Nodes without statistics are not computed in int8.
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

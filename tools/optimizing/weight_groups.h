// Groups of weights, the number of bits of each, and the pipeline of passes that stores them so.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_WEIGHT_GROUPS_H_
#define PERMAFROST_TOOLS_OPTIMIZING_WEIGHT_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// Storage of weights, from the least bits to the most. All but kFloat have a range for each channel, kFourBitBlocks one
// for each block of kWeightsPerBlock.
enum class Coding : uint8_t { kFourBits, kFourBitBlocks, kEightBits, kSixteenBits, kFloat };
inline constexpr int kWeightsPerBlock = 32;
// The name of the calibration file in transform strings of trials; commands for users have the path in its place.
inline constexpr absl::string_view kCalibrationName = "optimize_model.calibration";

absl::string_view NameOf(Coding coding);

// Constants that share a coding: one large constant, or several small ones.
struct WeightGroup {
  std::vector<std::string> constants;  // In the order of the graph.
  int64_t elements = 0;
  std::string reader;  // Op of the first reader of the first constant, read directly or through Identity nodes.

  // Returns the constant's name, or "NAME and 12 more".
  std::string Title() const;
};

// Constants with fewer elements than this stay in float, or become float16: codes with their ranges and nodes are
// hardly smaller. That of the preset smallest_download.
inline constexpr int64_t kMinCodedElements = 256;

// Returns the groups of float constants with at least kMinCodedElements, the largest first. The largest constants have
// groups of their own, and all others are bundled, so that there are at most `most` groups.
std::vector<WeightGroup> FindWeightGroups(const Graph& graph, size_t most);

// How a model stores its weights.
struct Storage {
  std::vector<Coding> codings;      // By group.
  bool has_half_remainder = false;  // Small constants are stored in float16.
  bool is_calibrated = false;       // Codes of four and eight bits are those of the calibration file.
};

// Returns the transform string: `base`, followed by passes that store the weights.
std::string TransformsOf(absl::string_view base, absl::Span<const WeightGroup> groups, const Storage& storage);

// Returns the approximate number of bytes of a group.
double EstimatedBytes(const WeightGroup& group, Coding coding);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_WEIGHT_GROUPS_H_

// Presets: names for transform strings that people would otherwise copy from each other.
#ifndef PERMAFROST_TRANSFORMS_PIPELINE_PRESETS_H_
#define PERMAFROST_TRANSFORMS_PIPELINE_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

struct Preset {
  absl::string_view name;
  absl::string_view summary;
  absl::string_view description;  // For whom, and why these passes in this order.
  absl::string_view transforms;   // May name presets that stand before it in the table.
};

absl::Span<const Preset> AllPresets();
// Null when there is none of that name.
const Preset* FindPreset(absl::string_view name);

// The transforms of the preset, with those of the presets that it names, one a line.
std::string TransformsOf(const Preset& preset);

// Puts the calls of a preset in the place of each call of it; `ignore_errors` goes to all of them. InvalidArgument when
// a preset is given another argument.
absl::StatusOr<std::vector<PassCall>> ExpandPresets(absl::Span<const PassCall> calls);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_PRESETS_H_

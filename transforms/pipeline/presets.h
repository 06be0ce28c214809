// Presets: names for common transform strings.
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
  absl::string_view description;  // Intended use, and the reason for the order of the passes.
  absl::string_view transforms;   // May name presets that precede it in the table.
};

absl::Span<const Preset> AllPresets();
// Returns the preset with that name, or null if there is none.
const Preset* FindPreset(absl::string_view name);

// Returns the transforms of the preset, one per line, with nested presets expanded.
std::string TransformsOf(const Preset& preset);

// Replaces each call of a preset with the calls of that preset; `ignore_errors` is passed on to all of them. Returns
// InvalidArgument if a preset is given another argument.
absl::StatusOr<std::vector<PassCall>> ExpandPresets(absl::Span<const PassCall> calls);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_PRESETS_H_

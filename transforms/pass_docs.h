// The reference page of all passes, from their definitions.
#ifndef PERMAFROST_TRANSFORMS_PASS_DOCS_H_
#define PERMAFROST_TRANSFORMS_PASS_DOCS_H_

#include <string>

#include "transforms/pass.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {

// One pass in Markdown, with a heading of the second level.
std::string PassDoc(const PassDefinition& pass);

// One preset, likewise.
std::string PresetDoc(const Preset& preset);

// docs/passes.md.
std::string PassDocs();

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PASS_DOCS_H_

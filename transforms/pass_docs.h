// Generates the reference page of all passes from their definitions.
#ifndef PERMAFROST_TRANSFORMS_PASS_DOCS_H_
#define PERMAFROST_TRANSFORMS_PASS_DOCS_H_

#include <string>

#include "transforms/pass.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {

// Returns the documentation of one pass in Markdown, under a heading of the second level.
std::string PassDoc(const PassDefinition& pass);

// Returns the documentation of one preset, in the same form.
std::string PresetDoc(const Preset& preset);

// Returns the text of docs/passes.md.
std::string PassDocs();

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PASS_DOCS_H_

// Manual pages and shell completions, generated from the definition of a tool.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_DOCUMENTS_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_DOCUMENTS_H_

#include <string>

#include "absl/types/span.h"
#include "tools/command_line/cli.h"

namespace permafrost {

// Returns the manual page, section 1, in the macros of man(7).
std::string ManualPage(const Tool& tool);
// Returns the manual page of the command that has all tools as subcommands.
std::string ManualPage(absl::Span<const Tool> tools);

// Returns completions of flag names, choices and files, for each tool by its own name and as a subcommand of
// permafrost.
std::string BashCompletion(absl::Span<const Tool> tools);
std::string ZshCompletion(absl::Span<const Tool> tools);
std::string FishCompletion(absl::Span<const Tool> tools);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_DOCUMENTS_H_

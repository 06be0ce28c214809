// What a system installs beside a tool, from its definition: the manual page, and what shells complete.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_DOCUMENTS_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_DOCUMENTS_H_

#include <string>

#include "absl/types/span.h"
#include "tools/command_line/cli.h"

namespace permafrost {

// Section 1, in the macros of man(7).
std::string ManualPage(const Tool& tool);
// The page of the command that has all of them as subcommands.
std::string ManualPage(absl::Span<const Tool> tools);

// For each tool by its own name, and as a subcommand of permafrost: names of flags, choices, and files.
std::string BashCompletion(absl::Span<const Tool> tools);
std::string ZshCompletion(absl::Span<const Tool> tools);
std::string FishCompletion(absl::Span<const Tool> tools);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_DOCUMENTS_H_

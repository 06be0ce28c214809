// Notices what a web page or a word processor makes of dashes and quotes in a pasted command.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_TYPOGRAPHY_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_TYPOGRAPHY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// InvalidArgument when `argument` starts with a dash that is not ASCII's ("–-in_graph", "—in_graph"), or when it, or
// the value after "=", starts or ends with a typographic quote. The message names the character and shows the argument
// as it should be. Characters further inside are left alone: a file may be called so.
absl::Status CheckTypography(absl::string_view argument);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_TYPOGRAPHY_H_

// print_selective_registration_header: says which ops and kernels models need, as a header for a build.
#ifndef PERMAFROST_TOOLS_PRINT_SELECTIVE_REGISTRATION_HEADER_H_
#define PERMAFROST_TOOLS_PRINT_SELECTIVE_REGISTRATION_HEADER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

struct PrintSelectiveRegistrationHeaderOptions {
  std::vector<std::string> graphs;  // Each a list with commas.
  std::string proto_fileformat = "rawproto";
  std::string default_ops = "NoOp:NoOp,_Recv:RecvOp,_Send:SendOp";
  std::string style = "tensorflow";
  bool strict = false;
  bool allow_missing = false;
  ReadFlags read;
};

// Prints the header on `out`. A node that no kernel serves is a warning on `err` and left out, as in the original, or
// with `strict` part of one error that lists them all. Where nothing is left, prints the original's lines and is
// FailedPrecondition. For our own runtime it is the error that is the rule, and `allow_missing` makes it a warning.
absl::Status PrintSelectiveRegistrationHeader(const PrintSelectiveRegistrationHeaderOptions& options, FileSystem& files,
                                              Console& console);

Tool PrintSelectiveRegistrationHeaderTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_PRINT_SELECTIVE_REGISTRATION_HEADER_H_

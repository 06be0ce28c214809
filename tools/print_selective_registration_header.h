// print_selective_registration_header: prints the ops and kernels that models need, as a header for a build.
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
  std::vector<std::string> graphs;  // Each item is a comma separated list.
  std::string proto_fileformat = "rawproto";
  std::string default_ops = "NoOp:NoOp,_Recv:RecvOp,_Send:SendOp";
  std::string style = "tensorflow";
  bool strict = false;
  bool allow_missing = false;
  ReadFlags read;
};

// Prints the header on `out`. For TensorFlow, a node that no kernel serves is left out with a warning on `err`, as in
// TensorFlow's tool; with `strict` it is part of one error that lists all such nodes. If no op remains, prints
// TensorFlow's lines and returns FailedPrecondition. For Permafrost's runtime the error is the default, and
// `allow_missing` makes it a warning.
absl::Status PrintSelectiveRegistrationHeader(const PrintSelectiveRegistrationHeaderOptions& options, FileSystem& files,
                                              Console& console);

Tool PrintSelectiveRegistrationHeaderTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_PRINT_SELECTIVE_REGISTRATION_HEADER_H_

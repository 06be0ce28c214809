// Header for TensorFlow's selective registration: pairs of op and kernel class.
#ifndef PERMAFROST_TOOLS_SELECTIVE_TENSORFLOW_HEADER_H_
#define PERMAFROST_TOOLS_SELECTIVE_TENSORFLOW_HEADER_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Ordered as in TensorFlow: by op, then by class; an op without a kernel comes first.
struct OpAndKernel {
  std::string op;
  std::optional<std::string>
      kernel;  // The text of the class; absent for an op that TensorFlow rewrites before the run.

  friend bool operator<(const OpAndKernel& a, const OpAndKernel& b) {
    return a.op != b.op ? a.op < b.op : a.kernel < b.kernel;
  }
};
using OpsAndKernels = std::set<OpAndKernel>;

// Returns the text of ops_to_register.h for -DSELECTIVE_REGISTRATION: the macros SHOULD_REGISTER_OP,
// SHOULD_REGISTER_OP_KERNEL and SHOULD_REGISTER_OP_GRADIENT, as constant expressions of C++11. Ends with a line feed.
std::string TensorFlowHeader(const OpsAndKernels& pairs);
// Returns the header that registers everything.
std::string TensorFlowHeaderOfAll();

// Parses "Op:Class,Op:Class". A comma inside angle brackets belongs to the class. InvalidArgument (piece) for a piece
// without op or class.
absl::StatusOr<OpsAndKernels> ParseDefaultOps(absl::string_view text);

// Parses [["Op", "Class"], ["Op", null]] as JSON. InvalidArgument for any other text.
absl::StatusOr<OpsAndKernels> ParseOpsList(absl::string_view text);
std::string OpsList(const OpsAndKernels& pairs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_TENSORFLOW_HEADER_H_

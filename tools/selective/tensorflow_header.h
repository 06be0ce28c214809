// What TensorFlow's selective registration is told: pairs of op and kernel class, and the header that holds them.
#ifndef PERMAFROST_TOOLS_SELECTIVE_TENSORFLOW_HEADER_H_
#define PERMAFROST_TOOLS_SELECTIVE_TENSORFLOW_HEADER_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// In the order of the original: by op, then by class, an op without a kernel first.
struct OpAndKernel {
  std::string op;
  std::optional<std::string> kernel;  // The text of the class; none for an op that TensorFlow rewrites before it runs.

  friend bool operator<(const OpAndKernel& a, const OpAndKernel& b) {
    return a.op != b.op ? a.op < b.op : a.kernel < b.kernel;
  }
};
using OpsAndKernels = std::set<OpAndKernel>;

// The text of ops_to_register.h, for -DSELECTIVE_REGISTRATION: the macros SHOULD_REGISTER_OP, SHOULD_REGISTER_OP_KERNEL
// and SHOULD_REGISTER_OP_GRADIENT, as constant expressions of C++11. Ends with a line feed.
std::string TensorFlowHeader(const OpsAndKernels& pairs);
// The same with everything registered.
std::string TensorFlowHeaderOfAll();

// "Op:Class,Op:Class". A comma inside angle brackets belongs to the class. InvalidArgument (piece) for one that has no
// op or no class.
absl::StatusOr<OpsAndKernels> ParseDefaultOps(absl::string_view text);

// [["Op", "Class"], ["Op", null]] as JSON. InvalidArgument for anything else.
absl::StatusOr<OpsAndKernels> ParseOpsList(absl::string_view text);
std::string OpsList(const OpsAndKernels& pairs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_TENSORFLOW_HEADER_H_

// Header for a selective build of Permafrost's runtime: ops, and the element types of each.
#ifndef PERMAFROST_TOOLS_SELECTIVE_PERMAFROST_HEADER_H_
#define PERMAFROST_TOOLS_SELECTIVE_PERMAFROST_HEADER_H_

#include <array>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "tools/selective/model_nodes.h"

namespace permafrost {

struct Selection {
  // Types by op, then by the type attribute of its kernel. The key "" holds all types among the inputs, outputs and
  // attributes of the op's nodes; a source file of kernels can be limited to the types of its ops.
  std::map<std::string, std::map<std::string, std::set<DType>>> ops;
  std::set<DType> types;  // Types of all tensors.
  // The signatures of the steps of program files: op, TypesText and SignatureAttrs (program_signature.h).
  std::set<std::array<std::string, 3>> signatures;
};

// Adds the op and types of `node`. Unimplemented, with the nearest ops or types, if no kernel serves it; the selection
// is then unchanged. A type that the caller of a function supplies counts as every type that the kernel serves.
absl::Status Select(const ModelNode& node, Selection* selection);

// Adds the ops that the session itself inserts for functions.
void SelectFunctions(Selection* selection);

// Returns the text of ops_to_register.h, ending with a line feed; `command` is the command that generates it again.
std::string PermafrostHeader(const Selection& selection, absl::string_view command);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_PERMAFROST_HEADER_H_

// What a selective build of our own runtime is told: ops, and the element types of each.
#ifndef PERMAFROST_TOOLS_SELECTIVE_PERMAFROST_HEADER_H_
#define PERMAFROST_TOOLS_SELECTIVE_PERMAFROST_HEADER_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "tools/selective/model_nodes.h"

namespace permafrost {

struct Selection {
  // By op, then by the type attribute that its kernel asks about. Under "" are all types that its nodes have among
  // their inputs, outputs and attributes, so that a source file of kernels can be narrowed to what its ops need.
  std::map<std::string, std::map<std::string, std::set<DType>>> ops;
  std::set<DType> types;  // Of all tensors.
};

// Adds what `node` needs. Unimplemented, with the ops or types nearest to it, when no kernel serves it; the selection
// is as it was then. A type that a function's caller gives counts as each that the kernel serves.
absl::Status Select(const ModelNode& node, Selection* selection);

// Adds what the session itself puts where a model has functions.
void SelectFunctions(Selection* selection);

// The text of ops_to_register.h; `command` is how to make it again. Ends with a line feed.
std::string PermafrostHeader(const Selection& selection, absl::string_view command);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_PERMAFROST_HEADER_H_

// Reads and edits GraphDef.library, which the graph keeps in serialized form.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

// Returns false only if no node can call a function of the library: every op is in the op table and no attribute names
// a function. O(attributes).
bool MayCallFunctions(const Graph& graph);

struct NamedAttr {
  std::string name;
  AttrValue value;
};

// A node in the body of a function. The views are valid only during the call that receives it.
struct FunctionNode {
  absl::string_view function;
  absl::string_view name;
  absl::string_view op;
  std::vector<absl::string_view> attrs;  // Attribute names.
};

// Adds the attributes returned by `missing` to the nodes in the bodies of all functions, and returns the number of
// changed nodes. All other bytes of the library are unchanged. Returns DataLoss for a library that cannot be read.
absl::StatusOr<int64_t> AddAttrsInFunctions(Graph* graph,
                                            absl::FunctionRef<std::vector<NamedAttr>(const FunctionNode&)> missing);

// Removes the functions that no node of the graph calls, directly or indirectly. Keeps all functions if an op is
// neither in the op table nor a function, since it may call any of them. Returns true if the library changed. Returns
// DataLoss or InvalidArgument for a library that cannot be read. O(attributes + bytes of the library).
absl::StatusOr<bool> PruneFunctions(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_

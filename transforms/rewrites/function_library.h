// What passes need to know of GraphDef.library, which the graph keeps as bytes.
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

// True unless it is certain that no node calls a function of the library: every op is in the op table and no attribute
// names a function. O(attributes).
bool MayCallFunctions(const Graph& graph);

struct NamedAttr {
  std::string name;
  AttrValue value;
};

// A node in the body of a function: views that are valid during the call that gets it.
struct FunctionNode {
  absl::string_view function;
  absl::string_view name;
  absl::string_view op;
  std::vector<absl::string_view> attrs;  // Their names.
};

// Gives the nodes in the bodies of all functions the attributes that `missing` says, and returns how many nodes
// changed. Whatever else the library holds stays as it is, byte for byte. DataLoss for a library that cannot be read.
absl::StatusOr<int64_t> AddAttrsInFunctions(Graph* graph,
                                            absl::FunctionRef<std::vector<NamedAttr>(const FunctionNode&)> missing);

// Drops the functions that no node of the graph calls, directly or through others; where that is not certain, since an
// op is neither in the op table nor a function, none. Returns whether the library changed. DataLoss or InvalidArgument
// for a library that cannot be read. O(attributes + bytes of the library).
absl::StatusOr<bool> PruneFunctions(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_

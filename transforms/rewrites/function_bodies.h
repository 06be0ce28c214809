// Runs a pass over the bodies of functions.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_BODIES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_BODIES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// Edits a body (see graph/functions/function.h) and returns the number of rewrites.
using EditBody = absl::FunctionRef<absl::StatusOr<int64_t>(Graph* body)>;

// Calls `edit` for the body of each function that the graph may call, in the order of the library, and stores changed
// bodies. Returns the number of rewrites in them. Notes made by `edit` are prefixed with the name of the function.
//
// Leaves a body unchanged, with a note, if it depends on attributes of its callers, cannot be converted to a graph or
// back, or `edit` returns an error. Returns DataLoss or InvalidArgument for a library that cannot be read. O(bytes of
// the library) if no function is called.
absl::StatusOr<int64_t> EditFunctionBodies(Graph* graph, PassContext* context, EditBody edit);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_BODIES_H_

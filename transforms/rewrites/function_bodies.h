// Runs a pass over the bodies of functions.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_BODIES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_BODIES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// Edits a body (see graph/functions/function.h) and returns how many rewrites it made.
using EditBody = absl::FunctionRef<absl::StatusOr<int64_t>(Graph* body)>;

// Calls `edit` for the body of each function that the graph may call, in the order of the library, and stores the
// bodies that changed. Returns the number of rewrites in them. Notes that `edit` makes get the name of the function in
// front.
//
// Left alone, with a note: a body that depends on attributes of its callers, one that no graph can be made of or that
// cannot be written back, and one for which `edit` returns an error. DataLoss or InvalidArgument for a library that
// cannot be read. O(bytes of the library) where no function is called.
absl::StatusOr<int64_t> EditFunctionBodies(Graph* graph, PassContext* context, EditBody edit);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_BODIES_H_

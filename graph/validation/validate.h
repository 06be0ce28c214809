// Checks of the conditions that the construction of a graph does not guarantee.
#ifndef PERMAFROST_GRAPH_VALIDATION_VALIDATE_H_
#define PERMAFROST_GRAPH_VALIDATION_VALIDATE_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

// Checks the nodes of `graph`. Returns InvalidArgument with up to five problems in one message, each with its node:
//   - a node of a known op has another number of data inputs than its schema and attributes specify;
//   - an input, or a declared input or output, refers to an output that its producer does not have;
//   - type attributes of a node contradict each other (a Complex of float with output complex128);
//   - an input has another type than the output that it reads (if both are known);
//   - a Const lacks `dtype` or `value`, they disagree, or the value is malformed (its elements are not read);
//   - the nodes form a cycle other than a loop of V1 control flow.
// Unknown ops and types that depend on a missing attribute are not checked. O(nodes + edges + bytes of attributes that
// types depend on).
absl::Status Validate(const Graph& graph);

// Checks the function library. Returns InvalidArgument, in the same form, for a body that is no valid graph or that
// Validate rejects; for a node that calls a function missing from the library; and for a PartitionedCall, If, Case or
// While whose inputs or outputs differ from those of its functions. Functions whose signature has attributes are
// checked for each existing call. Bodies are not checked where they depend on an unknown op. O(bytes of the library +
// calls).
absl::Status ValidateFunctions(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VALIDATION_VALIDATE_H_

// What a graph must satisfy beyond what its construction guarantees.
#ifndef PERMAFROST_GRAPH_VALIDATION_VALIDATE_H_
#define PERMAFROST_GRAPH_VALIDATION_VALIDATE_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

// InvalidArgument with up to five problems in one message, each with its node:
//   - an op of the schema table has another number of data inputs than its schema and attributes ask for;
//   - an input, or a declared endpoint, names an output that its producer does not have;
//   - an input has another type than the output that it reads (where both are known);
//   - a Const lacks `dtype` or `value`, they disagree, or the value is malformed (its elements are not read);
//   - the nodes form a cycle other than a loop of V1 control flow.
// What the schema table does not cover, or an attribute that is missing leaves open, is not a problem.
// O(nodes + edges + bytes of attributes that types depend on).
absl::Status Validate(const Graph& graph);

// InvalidArgument, likewise, for the function library: a body that no graph can be made of or that Validate refuses;
// a node of the graph or of a body that calls a function which the library does not have; a PartitionedCall, If, Case
// or While whose inputs or outputs are not those of its functions. Functions whose signature has attributes are looked
// at for the callers that there are. Bodies are not checked where they depend on an op that is not known. O(bytes of
// the library + calls).
absl::Status ValidateFunctions(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VALIDATION_VALIDATE_H_

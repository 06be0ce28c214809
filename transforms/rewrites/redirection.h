// Redirects the inputs of a node to the replacements of their producers.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_REDIRECTION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_REDIRECTION_H_

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// Returns the replacement of an input, or the input itself if it is unchanged. A data input must stay a data input, a
// control input a control input.
using Redirect = absl::FunctionRef<TensorRef(TensorRef)>;

// Redirects all inputs of `node` and adds each of `more_controls` as a control input. If anything changes, redundant
// control inputs are dropped: those from the node itself or from a node that is already an input. (A Merge keeps
// control inputs from its data producers, since it waits for only one data input.) O(inputs). Returns true if the node
// changed.
bool RedirectInputs(Graph* graph, Node* node, Redirect redirect, absl::Span<Node* const> more_controls = {});

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_REDIRECTION_H_

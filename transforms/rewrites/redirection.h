// Points the inputs of a node at what has taken the place of the nodes they came from.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_REDIRECTION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_REDIRECTION_H_

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// What stands for an input now: the input itself where nothing changed. A data input must stay a data input, a control
// input a control input.
using Redirect = absl::FunctionRef<TensorRef(TensorRef)>;

// Redirects all inputs of `node` and makes each of `more_controls` a control input. When anything changes, a control
// input from a node that is already a control or a data input, or the node itself, is dropped: it asks for nothing
// more. (A Merge keeps control inputs from nodes that also give it data, since it waits for only one of its data
// inputs.) O(inputs). Returns whether the node changed.
bool RedirectInputs(Graph* graph, Node* node, Redirect redirect, absl::Span<Node* const> more_controls = {});

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_REDIRECTION_H_

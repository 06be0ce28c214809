// Forms of operators in a graph: which rows of the table may write a node, and shared parts of composed forms.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_FORMS_H_
#define PERMAFROST_IO_FORMATS_TFLITE_FORMS_H_

#include <vector>

#include "graph/graph.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {

// Returns the rows whose form has `op` as the node that computes, in the order in which they are tried.
const std::vector<const OperatorRow*>& FormsOf(Op op);

// Returns the Const that a tensor reads: directly, through Identity nodes, or converted from half to float. Null if
// there is none, or if it is fed.
const Node* WeightBehind(TensorRef ref);

// True for Maximum(Minimum(x, high), low) and Minimum(Maximum(x, low), high) with constants, in which the inner node
// has no other reader. Sets *x.
bool IsClamp(const Node& node, double low, double high, TensorRef* x);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_FORMS_H_

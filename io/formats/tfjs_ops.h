// Ops that only TensorFlow.js has, in the words of TensorFlow.
#ifndef PERMAFROST_IO_FORMATS_TFJS_OPS_H_
#define PERMAFROST_IO_FORMATS_TFJS_OPS_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

// Names of nodes, and what they give, stay:
//   FusedDepthwiseConv2dNative            =>   _FusedDepthwiseConv2dNative
//   Prelu y(x, a)                         =>   Sub y(Relu(x), Mul(a, Relu(Neg(x))))
//   fused op y(..., a), last of fused_ops is Prelu
//                                         =>   the fused op without it, then as Prelu
//   _FusedConv2D without TArgs            =>   with them, as newer versions of TensorFlow want it
// InvalidArgument, with the node: a Prelu that lacks its inputs.
absl::Status SpellTfjsOps(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFJS_OPS_H_

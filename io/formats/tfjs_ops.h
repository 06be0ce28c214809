// Replaces ops that only TensorFlow.js has by TensorFlow ops.
#ifndef PERMAFROST_IO_FORMATS_TFJS_OPS_H_
#define PERMAFROST_IO_FORMATS_TFJS_OPS_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

// Rewrites the ops of `graph`. Names and results of nodes do not change:
//   FusedDepthwiseConv2dNative            =>   _FusedDepthwiseConv2dNative
//   Prelu y(x, a)                         =>   Sub y(Relu(x), Mul(a, Relu(Neg(x))))
//   fused op y(..., a), last of fused_ops is Prelu
//                                         =>   the fused op without Prelu, then Prelu as above
//   _FusedConv2D without TArgs            =>   with TArgs, as newer versions of TensorFlow require
// Returns InvalidArgument, with the node, for a Prelu with missing inputs.
absl::Status SpellTfjsOps(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFJS_OPS_H_

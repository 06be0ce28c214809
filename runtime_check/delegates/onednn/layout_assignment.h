// Assignment of memory layouts to images: those of nodes in NCHW lie in memory as [N, H, W, C].
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LAYOUT_ASSIGNMENT_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LAYOUT_ASSIGNMENT_H_

#include <vector>

#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/node_kinds.h"

namespace permafrost {
namespace onednn {

// Rewrites a partition with nodes in NCHW (ParsedNode::is_channels_first) or transposes between the two layouts, so
// that all nodes read and write [N, H, W, C]. Elementwise nodes, Concat, Pad, Split and reductions follow the layout of
// their inputs. A Transpose is left or added only where a value enters or leaves that part of the graph, and is not
// computed where it cancels with another one. Tensors keep their numbers; new ones are appended. `nodes`: by node.
void AssignLayouts(Partition* partition, std::vector<ParsedNode>* nodes);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LAYOUT_ASSIGNMENT_H_

// Frames, the loops of V1 control flow: maps nodes to frames, and orders the nodes so that each frame is contiguous.
//
// An Enter leads into a frame and an Exit out of it; NextIteration passes its input to the Merge nodes of the next
// iteration. A frame is ordered like a node of its parent: it runs after all its Enter nodes, and before every reader
// of one of its Exit nodes. So each frame has a fixed order of its own, in which inner frames are blocks, and the whole
// graph is one list.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FRAMES_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FRAMES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// The role of a node in control flow.
enum class FlowRole : uint8_t {
  kNone,
  kSwitch,         // Also RefSwitch and _SwitchN.
  kMerge,          // Also RefMerge.
  kEnter,          // Also RefEnter.
  kExit,           // Also RefExit.
  kNextIteration,  // Also RefNextIteration.
  kTrigger,        // ControlTrigger: runs even after a node that did not run.
};
FlowRole FlowRoleOf(Op op);

class FusedLoop;

struct Frame {
  std::string name;  // Empty for the graph itself, which is frame 0.
  int parent = -1;
  // The nodes that run in the frame and in those inside it are order[begin, end).
  int begin = 0;
  int end = 0;
  int depth = 0;
  std::shared_ptr<FusedLoop> fused;  // Null for frame 0. Shared by the copies of a program.
};

struct FrameOrder {
  std::vector<Node*> order;
  std::vector<int> frame_of;  // By position: the frame that the node runs in. An Enter runs in the parent.
  std::vector<Frame> frames;
};

// Returns the frame that contains the outputs of a node.
int FrameOfOutputs(const std::vector<Frame>& frames, FlowRole role, int frame, int entered);

// Orders the nodes for which `needed` (by id) is set; among nodes that are ready, the first in the file comes first.
// `waits_for` returns whether an input is computed by its producer rather than fed. InvalidArgument, with the nodes
// named, for inputs from different frames, an Exit or NextIteration outside a frame, a frame entered from two others, a
// value that flows back into the frame it left, and for a cycle that no NextIteration closes. O(nodes log nodes +
// edges).
absl::StatusOr<FrameOrder> OrderByFrames(const Graph& graph, const std::vector<bool>& needed,
                                         absl::FunctionRef<bool(TensorRef)> waits_for);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FRAMES_H_

// Elementwise work as single steps, before it is fused to something: what can be simplified is, here.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STEPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STEPS_H_

#include <vector>

#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// result = op(value, other). Tensors are numbers of storages: an alias has that of what it renames.
struct Step {
  LoopOp op = LoopOp::kCopy;
  float alpha = 0, beta = 0;
  int value = -1;
  int other = -1;                // -1: none, or `constants`.
  std::vector<float> constants;  // The other operand where it is constant, as `meeting` says.
  Meeting meeting = Meeting::kSame;
  int result = -1;
  int position = 0;  // Of the node, in the order of the partition.
  int node = 0;      // Index of the node, for its name.
  Rows rows;         // Of the result.
  int64_t images = 1;
  bool is_dropped = false;  // Another step does its work.

  explicit Step(const Shape& shape) : rows(shape), images(shape.rank() == 0 ? 1 : shape.dim(0)) {}
  bool has_other() const { return other >= 0 || !constants.empty(); }
};

// Who reads a storage.
struct Readers {
  std::vector<int> steps;  // Indices, each as often as it reads.
  int others = 0;          // Nodes that are no steps, and outputs of the partition.
};

// Finds, behind a value, groups of steps that only spell out a function of it: parametric ReLU (relu(x) + a * min(x, 0)
// in any of its disguises), hard swish and swish. One step then does it; the others are dropped, and `readers` is kept
// current. A group must be all that reads its inner values.
void Simplify(std::vector<Step>* steps, std::vector<Readers>* readers);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STEPS_H_

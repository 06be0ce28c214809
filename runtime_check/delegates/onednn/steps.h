// Elementwise steps before fusion, and their simplification.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STEPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STEPS_H_

#include <vector>

#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/piece.h"

namespace permafrost {
namespace onednn {

// An elementwise operation: result = op(value, other). Operands are storage numbers: an alias has the number of the
// tensor that it renames.
struct Step {
  LoopOp op = LoopOp::kCopy;
  float alpha = 0, beta = 0;
  int value = -1;
  int other = -1;                // -1: none, or `constants`.
  std::vector<float> constants;  // The other operand if it is constant, in the form that `meeting` names.
  Meeting meeting = Meeting::kSame;
  int result = -1;
  int position = 0;  // Position of the node in the partition.
  int node = 0;      // Index of the node, used for its name.
  Rows rows;         // Rows of the result.
  int64_t images = 1;
  bool is_dropped = false;  // True if another step does its work.

  explicit Step(const Shape& shape) : rows(shape), images(shape.rank() == 0 ? 1 : shape.dim(0)) {}
  bool has_other() const { return other >= 0 || !constants.empty(); }
};

// The readers of a storage.
struct Readers {
  std::vector<int> steps;  // Indices; a step that reads twice is listed twice.
  int others = 0;          // Number of readers that are other nodes or outputs of the partition.
};

// Finds groups of steps that together compute one known function of a value: parametric ReLU (relu(x) + a * min(x, 0)
// and its equivalent forms), hard swish, swish or GELU in either form. Replaces each group by one step, drops the other
// steps, and updates `readers`. A group is replaced only if its inner values have no other readers.
void Simplify(std::vector<Step>* steps, std::vector<Readers>* readers);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_STEPS_H_

// Copies the body of a function into a graph, in place of its caller.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_BODY_COPY_H_
#define PERMAFROST_TRANSFORMS_REWRITES_BODY_COPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/functions/function.h"
#include "graph/graph.h"

namespace permafrost {

// Selects the nodes of the copy that wait for the gate.
enum class Gating {
  // Nodes whose only inputs are arguments and constants. Nothing in the body except constants runs before the gate.
  kStarts,
  // Nodes without any input, including constants. The others run in the frame and the branch of their arguments.
  kInputless,
  kBoth,
};

struct BodyCopy {
  std::vector<TensorRef> outputs;      // The source of each _Retval of the body.
  std::vector<Node*> control_outputs;  // Nodes that must have run.
  std::vector<Node*> nodes;            // All copies, in the order of the body.
};

// Limit on the nodes that copies add to a graph.
struct CopyBudget {
  int64_t nodes = 0;
  int64_t name_bytes = 0;
};

// Copies the nodes of `body` (see graph/functions/function.h) before `position` (null: at the end). Names begin with
// `prefix`; devices and attributes are unchanged; `args` replace the body's arguments. A control input from an argument
// becomes one from the argument's producer. If that producer is a Switch, it becomes one from the gate, since a
// completed Switch does not show which branch is taken. `gate` (may be null) becomes a control input of the nodes that
// `gating` selects. Loops get frames of their own, whose `frame_name` begins with `prefix` as well. Entries of `_class`
// are renamed with their node; entries that name an argument are dropped. REQUIRES: as many args as the body has.
// Returns ResourceExhausted if the copy exceeds `budget`, which is charged.
absl::StatusOr<BodyCopy> CopyBody(const Graph& body, absl::string_view prefix, absl::Span<const TensorRef> args,
                                  Node* gate, Gating gating, CopyBudget* budget, Graph* graph, Node* position);

// Returns true if a node must run even if its outputs are not read: ops with side effects or writable state, and ops
// that are not in the op table.
bool HasEffect(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_BODY_COPY_H_

// Puts the body of a function into a graph, in the place of what called it.
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

// Which nodes of the copy wait for the gate.
enum class Gating {
  // Those that have nothing but arguments and constants to wait for: nothing of the body runs before the gate, save
  // constants.
  kStarts,
  // Those without any input, constants too: the others run in the frame and the branch of their arguments.
  kInputless,
  kBoth,
};

struct BodyCopy {
  std::vector<TensorRef> outputs;      // What each _Retval of the body reads.
  std::vector<Node*> control_outputs;  // What must have run.
  std::vector<Node*> nodes;            // All copies, in the order of the body.
};

// What copies may add to a graph.
struct CopyBudget {
  int64_t nodes = 0;
  int64_t name_bytes = 0;
};

// Copies the nodes of `body` (see graph/functions/function.h) before `position` (null: at the end) under names that
// begin with `prefix`, devices and attributes as they are; `args` stand for its arguments. An argument that a node
// waits for is waited for in its producer; for one that comes from a Switch, whose completion says nothing of the
// branch, that is the gate. `gate` (may be null) becomes a control input of the nodes that `gating` says. Loops get
// frames of their own: `frame_name` begins with `prefix` too. Entries of `_class` follow their node; those that name an
// argument go.
// REQUIRES: as many args as the body has. ResourceExhausted when the budget, which is charged, does not suffice.
absl::StatusOr<BodyCopy> CopyBody(const Graph& body, absl::string_view prefix, absl::Span<const TensorRef> args,
                                  Node* gate, Gating gating, CopyBudget* budget, Graph* graph, Node* position);

// Whether a node must run even if nobody reads it: ops with side effects or state that is not only read, and ops that
// the table does not know.
bool HasEffect(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_BODY_COPY_H_

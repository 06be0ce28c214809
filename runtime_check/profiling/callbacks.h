// Functions that a session calls while it runs, for profiles.
#ifndef PERMAFROST_RUNTIME_CHECK_PROFILING_CALLBACKS_H_
#define PERMAFROST_RUNTIME_CHECK_PROFILING_CALLBACKS_H_

#include <functional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace permafrost {

class Node;

// Called after each node that runs, in order.
using NodeCallback = std::function<void(const Node& node, absl::Duration duration)>;

// Called at the end of each piece of a partition that runs. `name` is the name of the node, or of the nodes that were
// fused into the piece.
using PieceCallback = std::function<void(absl::string_view name, absl::Duration duration)>;

// The duration that a partition may report for a piece that followed the previous one without a gap and was not the
// first of the run: the callback reads the clock itself. Callbacks of a session always receive the measured duration.
inline absl::Duration SinceTheOneBefore() { return absl::InfiniteDuration(); }

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_CALLBACKS_H_

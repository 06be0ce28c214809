// Why something that looked like a match is none: in words for people, and as a fact from which follows what would
// help.
#ifndef PERMAFROST_GRAPH_MATCHING_NEAR_MISS_H_
#define PERMAFROST_GRAPH_MATCHING_NEAR_MISS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

struct NearMiss {
  enum class Kind {
    kOther,
    kNotConstant,  // `found` is not constant, expected a constant.
    kOtherOp,      // The node of `found` has another op than expected.
    kOtherPort,    // `found` is read at another output than expected.
    kShared,       // The node of `found` has several uses, expected one.
    kEndpoint,     // The node of `found` is a declared input or output.
    kArity,        // The node of `found` has another number of inputs than expected.
  };
  Kind kind = Kind::kOther;
  TensorRef found;       // What is at fault; the node may be null.
  std::string reason;    // "input 1, node 'w' (Relu), is not constant".
  std::string way_out;   // What would help, where only who looked knows; else it follows from kind and place.
  int num_failures = 1;  // How many conditions failed; 1 is one step from success.
};

// FailedPrecondition with `reason` as the message, which carries kind and place along as far as it is handed on as it
// is or Annotated: for functions that look whether a rewrite is possible.
absl::Status NotMatched(NearMiss::Kind kind, TensorRef found, absl::string_view reason);
// The same for what nothing but this text says how to get round ("use dilations=true").
absl::Status NotMatched(absl::string_view reason, absl::string_view way_out);
// What a status says; kOther for one that NotMatched() did not make. `graph` is the one that was looked at.
NearMiss NearMissOf(const absl::Status& status, const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_MATCHING_NEAR_MISS_H_

// Reason why a near match failed, as text and as data from which a suggestion is derived.
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
  TensorRef found;       // The tensor that violates the condition; the node may be null.
  std::string reason;    // "input 1, node 'w' (Relu), is not constant".
  std::string way_out;   // The suggestion, if only the caller knows it; otherwise it is derived from kind and place.
  int num_failures = 1;  // Number of failed conditions; 1 is the closest to a match.
};

// Returns FailedPrecondition with `reason` as its message, for functions that check whether a rewrite is possible. Kind
// and place are attached as a payload, which Annotate preserves.
absl::Status NotMatched(NearMiss::Kind kind, TensorRef found, absl::string_view reason);
// Same, for a failure with an explicit suggestion ("use dilations=true").
absl::Status NotMatched(absl::string_view reason, absl::string_view way_out);
// Decodes a status made by NotMatched(); the kind of any other status is kOther. `graph` is the graph that was matched.
NearMiss NearMissOf(const absl::Status& status, const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_MATCHING_NEAR_MISS_H_

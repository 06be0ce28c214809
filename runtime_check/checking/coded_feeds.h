// Converts feeds for a graph whose inputs were changed by passes: to 8-bit codes, or to images that are prepared
// otherwise.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns `feed` unchanged, or its codes if `feed` is float and `input` is a placeholder of quint8. The codes are in
// mode MIN_FIRST, over the range that a reader of the placeholder has as a constant; values outside of it are clamped.
// FailedPrecondition if no reader has a constant range.
absl::StatusOr<Tensor> CodedFeed(const Endpoint& input, Tensor feed);

// Values of one input for two graphs that stand for the same image.
struct MatchedFeed {
  Tensor before;
  Tensor after;
};

// Returns feeds of the inputs `before` and `after`, of which passes may have changed the meaning: see
// graph/analysis/channel_map.h. `feed` is a value of `before`; it is changed if `after` takes bytes, to what these can
// represent. Otherwise returns `feed` and CodedFeed(after, feed). Same errors as CodedFeed and MapChannels.
absl::StatusOr<MatchedFeed> MatchFeed(const Endpoint& before, const Endpoint& after, const Tensor& feed);

// Returns whether MatchFeed maps values.
bool HasOtherMeaning(const Endpoint& before, const Endpoint& after);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_

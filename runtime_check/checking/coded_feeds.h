// Quantises feeds for a graph whose float inputs were changed to 8-bit inputs by passes.
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

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_

// Feeds for a graph that takes eight-bit codes where it took floats before passes went over it.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// `feed`, or, when it is float and `input` is a placeholder of quint8, its codes in the mode MIN_FIRST over the range
// that a reader of the placeholder is told as a constant. Values outside of it become its ends. FailedPrecondition when
// no reader tells the range.
absl::StatusOr<Tensor> CodedFeed(const Endpoint& input, Tensor feed);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_CODED_FEEDS_H_

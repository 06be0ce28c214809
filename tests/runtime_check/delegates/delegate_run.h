// Runs a graph with a delegate and without, for tests that compare the two.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DELEGATE_RUN_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DELEGATE_RUN_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/precision/precision_plan.h"
#include "runtime_check/session.h"

namespace permafrost {

// Floats between -2 and 2, the same for the same seed.
Tensor SomeFloats(const Shape& shape, uint32_t seed);

struct Feed {
  std::string name;
  Tensor value;
};

// What the delegate made of the graph. Fails the test, and returns an empty report, unless the outputs with the
// delegate, which is not asked what is worthwhile, are those of the reference kernels to within 1e-5 * max(1, |e|).
DelegationReport ExpectSame(const std::shared_ptr<const Delegate>& delegate, const Graph& graph,
                            const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                            int num_threads = 1);

// A session for the graph, with the delegate if it is not null.
absl::StatusOr<std::unique_ptr<Session>> MakeSession(const std::shared_ptr<const Delegate>& delegate,
                                                     const Graph& graph, const std::vector<std::string>& feeds,
                                                     const std::vector<std::string>& fetches, int num_threads);

// What onednn made of a graph under a plan.
struct PlanOutcome {
  double relative = 0;              // The largest error of an output over the reference kernels'; a NaN is kept.
  std::vector<std::string> pieces;  // Of all partitions.
  std::vector<Tensor> outputs;
};

// Runs the graph with onednn, which is not asked what is worthwhile, and with the reference kernels, both fed `input`
// for "x". Fails the test, and returns an empty outcome, where one of them fails.
PlanOutcome RunPlan(const Graph& graph, PrecisionPlan plan, const Tensor& input,
                    const std::vector<std::string>& fetches, int num_threads = 1);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DELEGATE_RUN_H_

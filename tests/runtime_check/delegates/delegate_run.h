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

// Returns floats between -2 and 2, equal for equal seeds.
Tensor SomeFloats(const Shape& shape, uint32_t seed);

struct Feed {
  std::string name;
  Tensor value;
};

// Returns the delegation report. Fails the test, and returns an empty report, unless the outputs with the delegate
// equal those of the reference kernels within 1e-5 * max(1, |e|). All partitions count as worthwhile.
DelegationReport ExpectSame(const std::shared_ptr<const Delegate>& delegate, const Graph& graph,
                            const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                            int num_threads = 1);

// Creates a session for the graph, with the delegate if it is not null.
absl::StatusOr<std::unique_ptr<Session>> MakeSession(const std::shared_ptr<const Delegate>& delegate,
                                                     const Graph& graph, const std::vector<std::string>& feeds,
                                                     const std::vector<std::string>& fetches, int num_threads);

// Result of running a graph in onednn with a precision plan.
struct PlanOutcome {
  double relative = 0;              // Largest error of an output relative to the reference kernels; NaN is preserved.
  std::vector<std::string> pieces;  // Pieces of all partitions.
  std::vector<Tensor> outputs;
};

// Runs the graph with onednn, all partitions counting as worthwhile, and with the reference kernels, both with `input`
// as "x". Fails the test, and returns an empty outcome, if one of them fails.
PlanOutcome RunPlan(const Graph& graph, PrecisionPlan plan, const Tensor& input,
                    const std::vector<std::string>& fetches, int num_threads = 1);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_DELEGATE_RUN_H_

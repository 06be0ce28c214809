// Compares a delegate with recorded outputs of TensorFlow for every kernel, one node at a time, regardless of
// IsWorthwhile.
//
// Each case is offered to the delegate in several settings: with the first input fed and the others constant, like
// weights; with each other input fed alone; with all inputs fed; and, if there are several outputs, with only one of
// them read. A setting does not count if the session would not offer the node (the kernel needs the value of a fed
// input, or all inputs are constant). A supported case is compiled for each number of threads and run twice in memory
// of exactly the guaranteed sizes, between guard pages. The results of both runs must be equal bit by bit and agree
// with the recorded ones. Finally the case runs inside a session.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_CONFORMANCE_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_CONFORMANCE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/delegate.h"

namespace permafrost {

using DelegateFactory = std::function<absl::StatusOr<std::shared_ptr<const Delegate>>()>;

struct ConformanceOptions {
  std::vector<int> thread_counts = {1, 2};
  // Factor for the tolerances of the kernel tests.
  double slack = 1;
  // Returns whether an error of Run is acceptable, because the delegate rejects certain values. If empty, no error is
  // acceptable.
  std::function<bool(const absl::Status&)> may_decline;
  // Only calls Supports; compiles and runs nothing.
  bool only_ask = false;
};

// Results of the cases of one op.
struct OpConformance {
  int num_cases = 0;                    // Cases that were offered in at least one setting.
  int num_run = 0;                      // Cases that were supported in at least one setting.
  std::map<std::string, int> refusals;  // By reason: number of cases refused in any setting.
};

struct ConformanceReport {
  std::map<std::string, OpConformance> ops;  // By name.
  std::vector<std::string> failures;         // Case, setting and error.
  int num_declined = 0;                      // Runs with an error that may_decline accepts.
};

// Runs all cases of one file of tests/kernels/vectors (tests/kernels/recorded_cases.h) and adds the results to
// `report`.
absl::Status RunConformance(const std::shared_ptr<const Delegate>& delegate, const std::string& family,
                            const ConformanceOptions& options, ConformanceReport* report);

// Wraps a delegate so that every partition is worthwhile.
std::shared_ptr<const Delegate> AlwaysWorthwhile(std::shared_ptr<const Delegate> delegate);

// Returns a Markdown table of the ops with supported cases, followed by the other ops by reason.
std::string ConformanceTable(const ConformanceReport& report);

// Returns docs/delegates.md: a section for each delegate. Compiles and runs nothing.
struct DocumentedDelegate {
  std::string name;
  std::string description;  // One or two sentences.
  DelegateFactory make;
};
absl::StatusOr<std::string> DelegateDocs(absl::Span<const DocumentedDelegate> delegates);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_CONFORMANCE_H_

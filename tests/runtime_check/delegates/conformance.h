// Holds a delegate to what TensorFlow recorded for every kernel, one node at a time, whatever IsWorthwhile says.
//
// A case is shown to the delegate in several settings: with the first input fed and the others constant, as weights
// are; with each other input fed alone; with all fed; and, where there are more outputs, with only one of them read. A
// setting in which the session would not ask the delegate (the kernel needs the value of an input that is fed, all
// inputs are constant) does not count. What the delegate takes is compiled for each number of threads and run twice in
// memory of exactly the sizes that it is promised, fenced by pages that nobody may touch; the results of both runs must
// be the same bit for bit, and agree with the recorded ones. Then it runs once more inside a session.
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
  // By how much the tolerances of the kernels' own test are multiplied.
  double slack = 1;
  // Whether an error of Run is as good as a result: what the delegate says of values that it cannot take. Empty: none
  // is.
  std::function<bool(const absl::Status&)> may_decline;
  // Asks the delegate what it supports, and compiles and runs nothing.
  bool only_ask = false;
};

// What became of the cases of one op.
struct OpConformance {
  int num_cases = 0;                    // In at least one setting the delegate was asked.
  int num_run = 0;                      // It took the case in at least one.
  std::map<std::string, int> refusals;  // By reason, how many cases were refused for it in a setting.
};

struct ConformanceReport {
  std::map<std::string, OpConformance> ops;  // By name.
  std::vector<std::string> failures;         // Case, setting and what is wrong.
  int num_declined = 0;                      // Runs that ended as may_decline allows.
};

// All cases of one file of tests/kernels/vectors (tests/kernels/recorded_cases.h); `report` is added to.
absl::Status RunConformance(const std::shared_ptr<const Delegate>& delegate, const std::string& family,
                            const ConformanceOptions& options, ConformanceReport* report);

// The same delegate, which takes every partition.
std::shared_ptr<const Delegate> AlwaysWorthwhile(std::shared_ptr<const Delegate> delegate);

// A table of the ops of which the delegate took a case, and the other ops by reason, in Markdown.
std::string ConformanceTable(const ConformanceReport& report);

// docs/delegates.md: a section for each delegate. Asks; runs nothing.
struct DocumentedDelegate {
  std::string name;
  std::string description;  // A sentence or two.
  DelegateFactory make;
};
absl::StatusOr<std::string> DelegateDocs(absl::Span<const DocumentedDelegate> delegates);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_CONFORMANCE_H_

// One node of any op on inputs that no model contains: other types, shapes, values, attributes and numbers of inputs
// than the op allows. Used by a test with random choices, and by a fuzzer.
#ifndef PERMAFROST_TESTS_KERNELS_ANY_INPUT_TRIAL_H_
#define PERMAFROST_TESTS_KERNELS_ANY_INPUT_TRIAL_H_

#include <string>

#include "absl/status/status.h"
#include "graph/ops/op.h"
#include "tests/fuzz/choices.h"

namespace permafrost {

struct TrialOutcome {
  absl::Status status;  // Of the run.
  // Why the outcome is a defect: an internal error, outputs of other types than the schema specifies, or
  // outputs of a pure op that differ between two sessions. Empty if it is none.
  std::string finding;
};

// A trial begins with a recorded case of the op, or with inputs and attributes drawn from its schema, and changes a few
// of them. The node then runs twice in each of two sessions, each input as a constant, fed, or through a Merge. Every
// byte of the outputs is read. Calls `describe` with the node before it runs. Data: //tests/kernels:vectors.
TrialOutcome RunAnyInputTrial(Op op, Choices choices, void (*describe)(const std::string& text) = nullptr);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_KERNELS_ANY_INPUT_TRIAL_H_

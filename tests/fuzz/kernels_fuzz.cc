// Fuzz target: bytes as the choice of a kernel, of attributes, and of inputs of any types. The run ends with an error
// of the caller, or with outputs of the types that the schema specifies.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime_check/kernel.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/finding.h"
#include "tests/kernels/any_input_trial.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  static const std::vector<Op> kOps = KernelOps();
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  Choices choices(bytes);
  const Op op = choices.Of(kOps);
  const TrialOutcome outcome = RunAnyInputTrial(op, choices);
  if (!outcome.finding.empty()) Fail(outcome.finding, bytes);
  return 0;
}

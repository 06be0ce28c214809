// Runs every kernel on nodes that no model contains (any_input_trial.h). Each run ends with an error status or with
// outputs of the types that the schema specifies. A crash, a hang, an internal error, and with AddressSanitizer any
// access outside of a tensor, is a finding.
//
// $ANY_INPUT_TRIALS and $ANY_INPUT_SEED select other trials; $ANY_INPUT_VERBOSE prints each before it runs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/kernel.h"
#include "tests/kernels/any_input_trial.h"

namespace permafrost {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// All trials together take seconds.
const uint64_t kTrials = FromEnvironment("ANY_INPUT_TRIALS", 120);
const uint64_t kSeed = FromEnvironment("ANY_INPUT_SEED", 1);
const bool kIsVerbose = std::getenv("ANY_INPUT_VERBOSE") != nullptr;

void Print(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

class AnyInputTest : public testing::TestWithParam<std::string> {};

TEST_P(AnyInputTest, EndsWithAStatusOrOutputs) {
  uint64_t name = 0;
  for (const char c : GetParam()) name = name * 131 + static_cast<unsigned char>(c);
  int num_ok = 0;
  for (uint64_t i = 0; i < kTrials; ++i) {
    const Choices choices((kSeed << 32) + name * 1000 + i);
    const TrialOutcome outcome = RunAnyInputTrial(Op::Named(GetParam()), choices, kIsVerbose ? &Print : nullptr);
    if (kIsVerbose) Print("  " + outcome.status.ToString());
    EXPECT_EQ(outcome.finding, "") << "trial " << i;
    num_ok += outcome.status.ok() ? 1 : 0;
  }
  RecordProperty("runs_with_outputs", num_ok);
  if (kIsVerbose) std::fprintf(stderr, "%d of %d with outputs\n", num_ok, static_cast<int>(kTrials));
}

std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const Op op : KernelOps()) names.emplace_back(op.name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, AnyInputTest, testing::ValuesIn(OpNames()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost

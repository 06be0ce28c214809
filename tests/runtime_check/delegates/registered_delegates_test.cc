// Runs every recorded case of every kernel with every registered delegate.
#include "tests/runtime_check/delegates/registered_delegates.h"

#include <string>
#include <tuple>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {
namespace {

class RegisteredDelegateTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(RegisteredDelegateTest, AgreesWithTensorFlow) {
  const auto& [name, family] = GetParam();
  const absl::StatusOr<std::shared_ptr<const Delegate>> delegate = MakeDelegate(name, {});
  if (absl::IsUnavailable(delegate.status())) GTEST_SKIP() << delegate.status();
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  ConformanceReport report;
  const absl::Status status = RunConformance(*delegate, family, ConformanceOptionsOf(name), &report);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(report.failures.empty()) << report.failures.size() << " failures:\n"
                                       << absl::StrJoin(report.failures, "\n");
}

INSTANTIATE_TEST_SUITE_P(All, RegisteredDelegateTest,
                         testing::Combine(testing::ValuesIn(RegisteredDelegates()),
                                          testing::ValuesIn(RecordedFamilies())),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace permafrost

// Every recorded case with the xnnpack delegate.
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {
namespace {

class XnnpackConformanceTest : public testing::TestWithParam<std::string> {};

TEST_P(XnnpackConformanceTest, ComputesWhatTensorFlowComputes) {
  const auto delegate = MakeXnnpackDelegate();
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  ConformanceOptions options;
  options.may_decline = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) && absl::StrContains(status.message(), "holds NaN or infinity");
  };
  ConformanceReport report;
  const absl::Status status = RunConformance(*delegate, GetParam(), options, &report);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(absl::StrJoin(report.failures, "\n"), "");
  int num_run = 0;
  for (const auto& [name, op] : report.ops) num_run += op.num_run;
  RecordProperty("cases", num_run);
  RecordProperty("declined", report.num_declined);
}

INSTANTIATE_TEST_SUITE_P(Families, XnnpackConformanceTest, testing::ValuesIn(RecordedFamilies()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost

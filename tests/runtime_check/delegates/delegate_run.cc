// Runs sessions and compares their outputs.
#include "tests/runtime_check/delegates/delegate_run.h"

#include <cmath>

#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/output_error.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {

Tensor SomeFloats(const Shape& shape, uint32_t seed) {
  std::vector<float> values;
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / static_cast<float>(1 << 22) - 2);
  }
  return Tensor::FromVector<float>(shape, std::move(values));
}

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const std::shared_ptr<const Delegate>& delegate,
                                                     const Graph& graph, const std::vector<std::string>& feeds,
                                                     const std::vector<std::string>& fetches, int num_threads) {
  SessionOptions options;
  options.num_threads = num_threads;
  options.delegate = delegate;
  return Session::Create(graph, feeds, fetches, options);
}

DelegationReport ExpectSame(const std::shared_ptr<const Delegate>& delegate, const Graph& graph,
                            const std::vector<Feed>& feeds, const std::vector<std::string>& fetches, int num_threads) {
  std::vector<std::string> names;
  std::vector<Tensor> values;
  for (const Feed& feed : feeds) {
    names.push_back(feed.name);
    values.push_back(feed.value);
  }
  DelegationReport report;
  const absl::Status status = [&]() -> absl::Status {
    PF_ASSIGN_OR_RETURN(const auto reference, MakeSession(nullptr, graph, names, fetches, num_threads));
    PF_ASSIGN_OR_RETURN(const auto session,
                        MakeSession(AlwaysWorthwhile(delegate), graph, names, fetches, num_threads));
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, reference->Run(values));
    for (int run = 0; run < 2; ++run) {
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, session->Run(values));
      for (size_t i = 0; i < actual.size(); ++i) {
        PF_RETURN_IF_ERROR(Annotate(CompareWithRecorded(actual[i], expected[i]), fetches[i]));
      }
    }
    report = session->report().delegation;
    return absl::OkStatus();
  }();
  EXPECT_TRUE(status.ok()) << status;
  return report;
}

PlanOutcome RunPlan(const Graph& graph, PrecisionPlan plan, const Tensor& input,
                    const std::vector<std::string>& fetches, int num_threads) {
  PlanOutcome outcome;
  const absl::Status status = [&]() -> absl::Status {
    PF_ASSIGN_OR_RETURN(const auto delegate,
                        MakeDelegate("onednn", {"mixed", std::make_shared<PrecisionPlan>(std::move(plan))}));
    PF_ASSIGN_OR_RETURN(const auto session,
                        MakeSession(AlwaysWorthwhile(delegate), graph, {"x"}, fetches, num_threads));
    PF_ASSIGN_OR_RETURN(const auto reference, MakeSession(nullptr, graph, {"x"}, fetches, num_threads));
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, session->Run({input}));
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, reference->Run({input}));
    for (const OutputError& error : CompareOutputs({expected}, {actual})) {
      if (!(error.relative() <= outcome.relative)) outcome.relative = error.relative();
      if (std::isnan(outcome.relative)) break;
    }
    const DelegationReport& report = session->report().delegation;
    EXPECT_EQ(report.failure, "");
    for (const DelegationReport::Taken& taken : report.partitions) {
      outcome.pieces.insert(outcome.pieces.end(), taken.pieces.begin(), taken.pieces.end());
    }
    outcome.outputs = actual;
    return absl::OkStatus();
  }();
  EXPECT_TRUE(status.ok()) << status;
  return outcome;
}

}  // namespace permafrost

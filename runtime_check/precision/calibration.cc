// Fetches the inner tensors of a model and accumulates their statistics.
#include "runtime_check/precision/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

// Limit on the values of all samples that are held at once, unless one tensor alone exceeds it.
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kMostChannels = 65536;

// Returns the names of the first outputs to measure, each once, in order.
std::vector<std::string> TensorsOf(const Graph& graph, absl::Span<const std::string> feeds,
                                   const DelegationReport& report) {
  std::vector<std::string> tensors;
  std::set<std::string> seen(feeds.begin(), feeds.end());
  const auto add = [&](const Node* node) {
    if (node->op() != ops::kConst && seen.insert(std::string(node->name())).second) {
      tensors.emplace_back(node->name());
    }
  };
  for (const DelegationReport::Taken& taken : report.partitions) {
    if (!taken.function.empty()) continue;
    for (const std::string& name : taken.nodes) {
      const Node* node = graph.Find(name);
      if (node == nullptr) continue;
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        if (node->input(i).port == 0) add(node->input(i).node);
      }
      add(node);
    }
  }
  return tensors;
}

bool IsOfInterest(DType dtype, const Shape& shape) {
  return dtype == DType::kFloat && shape.IsFullyKnown() && shape.rank() >= 1 && shape.num_elements() > 0;
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), values.size() * sizeof(float));
  return values;
}

// Returns the statistics of a tensor. `runs` has its value for each sample.
absl::StatusOr<TensorStatistics> StatisticsOf(const std::string& name, absl::Span<const Tensor* const> runs,
                                              RangeMethod method) {
  TensorStatistics statistics;
  std::vector<double> sums;
  int64_t rows = 0;
  bool is_first = true;
  for (const Tensor* tensor : runs) {
    const std::vector<float> values = FloatsOf(*tensor);
    const auto channels = static_cast<size_t>(tensor->shape().dim(tensor->shape().rank() - 1));
    if (sums.empty() && static_cast<int64_t>(channels) <= kMostChannels) sums.assign(channels, 0.0);
    const bool has_means = sums.size() == channels;
    if (!has_means) sums.clear();
    for (size_t i = 0; i < values.size(); ++i) {
      const float value = values[i];
      if (!std::isfinite(value)) {
        return absl::InvalidArgumentError(
            absl::StrCat("calibration: found ", value, " in the output of '", name, "', expected finite numbers"));
      }
      statistics.least = is_first ? value : std::min(statistics.least, value);
      statistics.most = is_first ? value : std::max(statistics.most, value);
      is_first = false;
      if (has_means) sums[i % channels] += value;
    }
    rows += static_cast<int64_t>(values.size() / channels);
  }
  for (const double sum : sums) statistics.means.push_back(static_cast<float>(sum / static_cast<double>(rows)));
  Histogram histogram(std::max(std::fabs(statistics.least), std::fabs(statistics.most)));
  for (const Tensor* tensor : runs) histogram.Add(FloatsOf(*tensor));
  statistics.bound = histogram.Bound(method, statistics.least < 0 ? 127 : 255);
  return statistics;
}

}  // namespace

absl::StatusOr<std::map<std::string, TensorStatistics>> Calibrate(const Graph& graph,
                                                                  absl::Span<const std::string> feeds,
                                                                  absl::Span<const std::vector<Tensor>> samples,
                                                                  const DelegationReport& report, RangeMethod method,
                                                                  const SessionOptions& options) {
  if (samples.empty()) return absl::InvalidArgumentError("calibration needs sample inputs: found none");
  std::map<std::string, TensorStatistics> statistics;
  for (size_t i = 0; i < feeds.size(); ++i) {
    std::vector<const Tensor*> runs;
    for (const std::vector<Tensor>& sample : samples) {
      if (i < sample.size() && IsOfInterest(sample[i].dtype(), sample[i].shape())) runs.push_back(&sample[i]);
    }
    if (runs.size() != samples.size()) continue;
    PF_ASSIGN_OR_RETURN(statistics[feeds[i]], StatisticsOf(feeds[i], runs, method));
  }
  // One plan provides all shapes and types; its session is not run.
  std::vector<std::string> tensors = TensorsOf(graph, feeds, report);
  if (tensors.empty()) return statistics;
  std::vector<Shape> shapes;
  for (const Tensor& feed : samples[0]) shapes.push_back(feed.shape());
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> planner, Session::Create(graph, feeds, tensors, options));
  PF_ASSIGN_OR_RETURN(const std::vector<TensorSpec> specs, planner->Plan(shapes));
  planner.reset();
  std::vector<std::string> part;
  int64_t bytes = 0;
  const auto look = [&]() -> absl::Status {
    if (part.empty()) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(graph, feeds, part, options));
    std::vector<std::vector<Tensor>> results;
    for (const std::vector<Tensor>& sample : samples) {
      PF_ASSIGN_OR_RETURN(results.emplace_back(), session->Run(sample));
    }
    for (size_t t = 0; t < part.size(); ++t) {
      std::vector<const Tensor*> runs;
      for (const std::vector<Tensor>& result : results) {
        if (IsOfInterest(result[t].dtype(), result[t].shape())) runs.push_back(&result[t]);
      }
      if (runs.size() != samples.size()) continue;
      PF_ASSIGN_OR_RETURN(statistics[part[t]], StatisticsOf(part[t], runs, method));
    }
    part.clear();
    bytes = 0;
    return absl::OkStatus();
  };
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (!IsOfInterest(specs[t].dtype, specs[t].shape)) continue;
    const int64_t size =
        specs[t].shape.num_elements() * static_cast<int64_t>(sizeof(float)) * static_cast<int64_t>(samples.size());
    if (bytes + size > kMostBytes) PF_RETURN_IF_ERROR(look());
    part.push_back(tensors[t]);
    bytes += size;
  }
  PF_RETURN_IF_ERROR(look());
  return statistics;
}

}  // namespace permafrost

// Runs the samples in each precision, compares and times.
#include "runtime_check/precision_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/status.h"
#include "runtime_check/delegate_registry.h"

namespace permafrost {
namespace {

constexpr int kTimedRuns = 5;

using Outputs = std::vector<std::vector<Tensor>>;  // By sample.

absl::StatusOr<Outputs> RunAll(Session* session, absl::Span<const std::vector<Tensor>> samples) {
  Outputs outputs;
  for (const std::vector<Tensor>& sample : samples) {
    PF_ASSIGN_OR_RETURN(outputs.emplace_back(), session->Run(sample));
  }
  return outputs;
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  const UnalignedSpan<float> values(tensor.bytes().data(), static_cast<size_t>(tensor.num_elements()));
  std::vector<float> copy;
  copy.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) copy.push_back(values[i]);
  return copy;
}

// The length of a row, when the tensor holds probabilities of classes; else 0.
size_t ClassesOf(const Tensor& tensor, const std::vector<float>& values) {
  if (tensor.shape().rank() == 0 || values.empty()) return 0;
  const auto classes = static_cast<size_t>(tensor.shape().dim(tensor.shape().rank() - 1));
  if (classes < 2) return 0;
  for (size_t row = 0; row < values.size(); row += classes) {
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      if (!(values[row + c] >= 0 && values[row + c] <= 1)) return 0;
      sum += values[row + c];
    }
    if (std::fabs(sum - 1) > 1e-3) return 0;
  }
  return classes;
}

// What is known of one output over all samples.
struct Error {
  double difference = 0, expected = 0;  // Sums of squares.
  int64_t count = 0;
  bool has_other_class = false, is_comparable = true;

  void Add(const Tensor& expected_tensor, const Tensor& actual_tensor) {
    if (expected_tensor.dtype() != DType::kFloat) {
      is_comparable = is_comparable && expected_tensor == actual_tensor;
      return;
    }
    if (actual_tensor.dtype() != DType::kFloat || expected_tensor.shape() != actual_tensor.shape()) {
      is_comparable = false;
      return;
    }
    const std::vector<float> e = FloatsOf(expected_tensor), a = FloatsOf(actual_tensor);
    for (size_t i = 0; i < e.size(); ++i) {
      if (std::isnan(e[i]) && std::isnan(a[i])) continue;
      if (e[i] == a[i]) {
        if (std::isfinite(e[i])) expected += static_cast<double>(e[i]) * e[i];
      } else {
        const double apart = static_cast<double>(a[i]) - e[i];
        difference += apart * apart;  // NaN or infinite where one of them is.
        expected += static_cast<double>(e[i]) * e[i];
      }
      ++count;
    }
    const size_t classes = ClassesOf(expected_tensor, e);
    for (size_t row = 0; classes > 0 && row < e.size(); row += classes) {
      const auto largest = [&](const std::vector<float>& values) {
        const auto begin = values.begin() + static_cast<ptrdiff_t>(row);
        return std::max_element(begin, begin + static_cast<ptrdiff_t>(classes)) - begin;
      };
      has_other_class = has_other_class || largest(e) != largest(a);
    }
  }

  double rms() const { return count == 0 ? 0 : std::sqrt(difference / static_cast<double>(count)); }
  double relative() const {
    if (difference == 0) return 0;
    return expected == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / expected);
  }
};

void Judge(absl::Span<const std::string> fetches, const Outputs& expected, const Outputs& actual,
           const AccuracyBudget& budget, PrecisionTrial* trial) {
  trial->is_within_budget = true;
  const auto refuse = [&](std::string reason) {
    if (trial->is_within_budget) trial->reason = std::move(reason);
    trial->is_within_budget = false;
  };
  for (size_t i = 0; i < fetches.size(); ++i) {
    Error error;
    for (size_t s = 0; s < expected.size(); ++s) error.Add(expected[s][i], actual[s][i]);
    trial->worst_relative_rms = std::max(trial->worst_relative_rms, error.relative());
    if (!error.is_comparable) refuse(absl::StrCat("output '", fetches[i], "' is not what it was"));
    if (error.has_other_class) refuse(absl::StrCat("output '", fetches[i], "' has its largest elsewhere"));
    if (error.relative() <= budget.relative_rms || error.rms() <= budget.absolute_rms) continue;
    refuse(absl::StrCat("output '", fetches[i], "': found rms error ", error.rms(), ", ", error.relative(),
                        " of its rms, expected at most ", budget.absolute_rms, " or ", budget.relative_rms));
  }
}

absl::Status Try(const Graph& graph, absl::Span<const std::string> feeds, absl::Span<const std::string> fetches,
                 absl::Span<const std::vector<Tensor>> samples, const std::string& name, SessionOptions options,
                 const Outputs& expected, const AccuracyBudget& budget, PrecisionTrial* trial) {
  DelegateOptions delegate_options;
  delegate_options.precision = trial->precision;
  PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(name, delegate_options));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, std::move(options)));
  PF_ASSIGN_OR_RETURN(const Outputs actual, RunAll(session.get(), samples));
  Judge(fetches, expected, actual, budget, trial);
  std::vector<double> times;
  for (int i = 0; i < kTimedRuns; ++i) {
    const absl::Time start = absl::Now();
    PF_RETURN_IF_ERROR(session->Run(samples[0]).status());
    times.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  std::sort(times.begin(), times.end());
  trial->milliseconds = times[times.size() / 2];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrecisionChoice> ChoosePrecision(const Graph& graph, absl::Span<const std::string> feeds,
                                                absl::Span<const std::string> fetches,
                                                absl::Span<const std::vector<Tensor>> samples, const std::string& name,
                                                const SessionOptions& options, const AccuracyBudget& budget) {
  if (samples.empty()) return absl::InvalidArgumentError("precision 'auto' is chosen with sample inputs: found none");
  std::vector<std::string> precisions;
  for (const DelegateInfo& info : KnownDelegates()) {
    if (info.name == name) precisions = info.precisions;
  }
  if (precisions.empty()) return MakeDelegate(name, {}).status();
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> reference, Session::Create(graph, feeds, fetches, options));
  PF_ASSIGN_OR_RETURN(const Outputs expected, RunAll(reference.get(), samples));
  reference.reset();
  PrecisionChoice choice;
  choice.precision = precisions[0];
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& precision : precisions) {
    PrecisionTrial& trial = choice.trials.emplace_back();
    trial.precision = precision;
    const absl::Status status = Try(graph, feeds, fetches, samples, name, options, expected, budget, &trial);
    if (!status.ok()) {
      trial.is_within_budget = false;
      trial.reason = std::string(status.message());
    }
    if (!trial.is_within_budget || trial.milliseconds >= least) continue;
    least = trial.milliseconds;
    choice.precision = precision;
  }
  return choice;
}

}  // namespace permafrost

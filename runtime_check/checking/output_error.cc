// Accumulates sums of squared differences.
#include "runtime_check/checking/output_error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace permafrost {
namespace {

std::vector<float> FloatsOf(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), values.size() * sizeof(float));
  return values;
}

// Returns the length of a row if the tensor holds class probabilities; otherwise 0.
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

}  // namespace

void OutputError::Add(const Tensor& expected, const Tensor& actual) {
  if (expected.dtype() != DType::kFloat) {
    is_comparable_ = is_comparable_ && expected == actual;
    return;
  }
  if (actual.dtype() != DType::kFloat || expected.shape() != actual.shape()) {
    is_comparable_ = false;
    return;
  }
  const std::vector<float> e = FloatsOf(expected), a = FloatsOf(actual);
  for (size_t i = 0; i < e.size(); ++i) {
    if (std::isnan(e[i]) && std::isnan(a[i])) continue;
    if (e[i] == a[i]) {
      if (std::isfinite(e[i])) expected_ += static_cast<double>(e[i]) * e[i];
    } else {
      const double apart = static_cast<double>(a[i]) - e[i];
      difference_ += apart * apart;  // NaN or infinite if an element is.
      expected_ += static_cast<double>(e[i]) * e[i];
    }
    ++count_;
  }
  const size_t classes = ClassesOf(expected, e);
  for (size_t row = 0; classes > 0 && row < e.size(); row += classes) {
    const auto largest = [&](const std::vector<float>& values) {
      const auto begin = values.begin() + static_cast<ptrdiff_t>(row);
      return std::max_element(begin, begin + static_cast<ptrdiff_t>(classes)) - begin;
    };
    ++class_rows_;
    num_other_classes_ += largest(e) != largest(a) ? 1 : 0;
  }
}

double OutputError::rms() const { return count_ == 0 ? 0 : std::sqrt(difference_ / static_cast<double>(count_)); }

double OutputError::relative() const {
  if (difference_ == 0) return 0;
  return expected_ == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference_ / expected_);
}

double OutputError::ShareOf(const AccuracyBudget& budget) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!is_comparable_) return kInfinity;
  if (difference_ == 0) return 0;
  const double of_output = count_ == 0 ? 0 : std::sqrt(expected_ / static_cast<double>(count_));
  const double allowed = std::max(budget.relative_rms * of_output, budget.absolute_rms);
  const double share = allowed > 0 ? rms() / allowed : kInfinity;
  return std::isnan(share) ? kInfinity : share;
}

std::vector<OutputError> CompareOutputs(const SampleOutputs& expected, const SampleOutputs& actual) {
  std::vector<OutputError> errors(expected.empty() ? 0 : expected[0].size());
  for (size_t s = 0; s < expected.size(); ++s) {
    for (size_t i = 0; i < errors.size(); ++i) errors[i].Add(expected[s][i], actual[s][i]);
  }
  return errors;
}

}  // namespace permafrost

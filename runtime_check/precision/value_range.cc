// Computes bounds from histograms.
#include "runtime_check/precision/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"

namespace permafrost {
namespace {

const std::vector<std::pair<std::string, RangeMethod>>& Methods() {
  static const auto* const methods =
      new std::vector<std::pair<std::string, RangeMethod>>{{"minmax", RangeMethod::kMinMax},
                                                           {"percentile99.9", RangeMethod::kPercentile999},
                                                           {"percentile99.99", RangeMethod::kPercentile9999},
                                                           {"kl", RangeMethod::kKl},
                                                           {"mse", RangeMethod::kMse}};
  return *methods;
}

}  // namespace

std::vector<std::string> RangeMethodNames() {
  std::vector<std::string> names;
  for (const auto& [name, method] : Methods()) names.push_back(name);
  return names;
}

absl::StatusOr<RangeMethod> RangeMethodOf(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const auto& [known, method] : Methods()) {
    if (known == name) return method;
    names.push_back(known);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no calibration '", name, "'; there are ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

double DivergenceInSteps(absl::Span<const int64_t> counts, int begin, int end, int steps) {
  constexpr double kLeastCount = 1e-3;  // The logarithm of an empty step is finite.
  std::vector<double> kept(counts.begin() + begin, counts.begin() + end);
  for (const int64_t count : counts.subspan(0, static_cast<size_t>(begin))) kept.front() += static_cast<double>(count);
  for (const int64_t count : counts.subspan(static_cast<size_t>(end))) kept.back() += static_cast<double>(count);
  double divergence = 0;
  for (int step = 0; step < steps; ++step) {
    const auto from = static_cast<size_t>(static_cast<int64_t>(step) * (end - begin) / steps);
    const auto to = static_cast<size_t>(static_cast<int64_t>(step + 1) * (end - begin) / steps);
    double inside = 0;
    int used = 0;
    for (size_t i = from; i < to; ++i) {
      inside += static_cast<double>(counts[static_cast<size_t>(begin) + i]);
      used += kept[i] > 0 ? 1 : 0;
    }
    if (used == 0) continue;
    const double spread = std::max(inside, kLeastCount) / used;
    for (size_t i = from; i < to; ++i) {
      if (kept[i] > 0) divergence += kept[i] * std::log(kept[i] / spread);
    }
  }
  return divergence;
}

void Histogram::Add(absl::Span<const float> values) {
  const float factor = most_ > 0 ? static_cast<float>(kBins) / most_ : 0;
  for (const float value : values) {
    if (value == 0) {
      ++zeros_;
      continue;
    }
    // The factor overflows for the smallest numbers.
    const float place = std::min(std::fabs(value) * factor, static_cast<float>(kBins - 1));
    ++counts_[static_cast<size_t>(place)];
    ++count_;
  }
}

float Histogram::Bound(RangeMethod method, int steps) const {
  if (most_ == 0 || count_ == 0) return 0;
  switch (method) {
    case RangeMethod::kMinMax:
      return most_;
    case RangeMethod::kPercentile999:
      return Percentile(0.999);
    case RangeMethod::kPercentile9999:
      return Percentile(0.9999);
    case RangeMethod::kKl:
      return LeastDivergence(steps);
    case RangeMethod::kMse:
      return LeastSquaredError(steps);
  }
  return most_;
}

float Histogram::Percentile(double part) const {
  const double wanted = part * static_cast<double>(zeros_ + count_);
  auto seen = static_cast<double>(zeros_);
  for (int i = 0; i < kBins; ++i) {
    seen += static_cast<double>(counts_[static_cast<size_t>(i)]);
    if (seen >= wanted) return static_cast<float>((i + 1) * BinWidth());
  }
  return most_;
}

double Histogram::SquaredError(float bound, int steps) const {
  if (count_ == 0) return 0;
  const double step = static_cast<double>(bound) / steps;
  double sum = 0;
  for (int i = 0; i < kBins; ++i) {
    const auto count = static_cast<double>(counts_[static_cast<size_t>(i)]);
    if (count == 0) continue;
    const double value = (i + 0.5) * BinWidth();
    // The rounding error is uniform in half a step in each direction, so its variance is step^2 / 12.
    const double beyond = value - bound;
    sum += count * (beyond > 0 ? beyond * beyond : step * step / 12);
  }
  return sum / static_cast<double>(zeros_ + count_);
}

float Histogram::LeastSquaredError(int steps) const {
  float best = most_;
  double least = SquaredError(best, steps);
  for (int percent = 99; percent >= 10; --percent) {
    const float bound = most_ * static_cast<float>(percent) / 100;
    const double error = SquaredError(bound, steps);
    if (error >= least) continue;
    least = error;
    best = bound;
  }
  return best;
}

float Histogram::LeastDivergence(int steps) const {
  float best = most_;
  double least = std::numeric_limits<double>::infinity();
  for (int bins = steps; bins <= kBins; bins += 16) {
    const double divergence = DivergenceInSteps(counts_, 0, bins, steps);
    if (divergence >= least) continue;
    least = divergence;
    best = static_cast<float>(bins * BinWidth());
  }
  return best;
}

}  // namespace permafrost

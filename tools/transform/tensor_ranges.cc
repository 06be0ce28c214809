// Implements the histograms and the runs that fill them.
#include "tools/transform/tensor_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "tools/transform/visited_values.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/quantizable_operators.h"

namespace permafrost {
namespace {

// Steps in which the search for the best range lowers each bound, and how far.
constexpr int kBoundSteps = 48;
constexpr double kLeastShare = 0.2;

}  // namespace

void ValueDistribution::Widen(double most) {
  if (most_ == 0) {
    // A power of two, so that doubling joins whole bins.
    most_ = std::exp2(std::ceil(std::log2(std::max(most, 1e-30))));
    return;
  }
  while (most_ < most) {
    std::array<int64_t, kBins> wider = {};
    for (int i = 0; i < kBins; ++i) {
      wider[static_cast<size_t>(kBins / 4 + i / 2)] += bins_[static_cast<size_t>(i)];
    }
    bins_ = wider;
    most_ *= 2;
  }
}

void ValueDistribution::Add(const Tensor& values) {
  if (values.dtype() != DType::kFloat) return;
  const UnalignedSpan<float> elements = values.elements<float>();
  float low = 0, high = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const float value = elements[i];
    if (!(std::abs(value) <= std::numeric_limits<float>::max())) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  low_ = std::min<double>(low_, low);
  high_ = std::max<double>(high_, high);
  const double most = std::max<double>(-low, high);
  if (most == 0) return;
  if (most > most_) Widen(most);
  const float per_unit = static_cast<float>(kBins / 2 / most_);
  for (size_t i = 0; i < elements.size(); ++i) {
    const float value = elements[i];
    if (value == 0 || !(std::abs(value) <= std::numeric_limits<float>::max())) continue;
    // The shifted position is positive, so that the conversion rounds down.
    const int bin = static_cast<int>(static_cast<double>(value) * per_unit + kBins / 2);
    ++bins_[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))];
  }
}

std::pair<double, double> ValueDistribution::Range(RangeMethod method, int steps) const {
  if (most_ == 0) return MinMax();
  switch (method) {
    case RangeMethod::kMinMax:
      break;
    case RangeMethod::kPercentile999:
      return Percentile(0.999);
    case RangeMethod::kPercentile9999:
      return Percentile(0.9999);
    case RangeMethod::kKl:
      return LeastDivergence(steps);
    case RangeMethod::kMse:
      return LeastSquaredError(steps);
  }
  return MinMax();
}

std::pair<double, double> ValueDistribution::Percentile(double part) const {
  double count = 0, seen = 0;
  for (const int64_t bin : bins_) count += static_cast<double>(bin);
  const double width = 2 * most_ / kBins;
  for (int i = 0; i < kBins / 2; ++i) {
    seen +=
        static_cast<double>(bins_[static_cast<size_t>(kBins / 2 + i)] + bins_[static_cast<size_t>(kBins / 2 - 1 - i)]);
    if (seen < part * count) continue;
    const double bound = (i + 1) * width;
    return {std::max(low_, -bound), std::min(high_, bound)};
  }
  return MinMax();
}

std::pair<double, double> ValueDistribution::LeastDivergence(int steps) const {
  const double width = 2 * most_ / kBins;
  const auto index = [&](double bound) {
    return static_cast<int>(std::clamp(std::round((bound + most_) / width), 0.0, static_cast<double>(kBins)));
  };
  std::pair<double, double> best = MinMax();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kBoundSteps; ++i) {
    const double share = 1 - (1 - kLeastShare) * i / kBoundSteps;
    const int begin = index(low_ * share), end = index(high_ * share);
    if (end - begin < steps) break;  // Steps would be smaller than bins.
    const double divergence = DivergenceInSteps(bins_, begin, end, steps);
    if (divergence >= least) continue;
    least = divergence;
    best = {low_ * share, high_ * share};
  }
  return best;
}

std::pair<double, double> ValueDistribution::LeastSquaredError(int steps) const {
  // Sums over the bins below an index: count, values and squares.
  std::vector<double> count(kBins + 1, 0), sum(kBins + 1, 0), squares(kBins + 1, 0);
  const double width = 2 * most_ / kBins;
  for (size_t i = 0; i < kBins; ++i) {
    const double value = -most_ + (static_cast<double>(i) + 0.5) * width;
    const double n = static_cast<double>(bins_[i]);
    count[i + 1] = count[i] + n;
    sum[i + 1] = sum[i] + n * value;
    squares[i + 1] = squares[i] + n * value * value;
  }
  const auto index = [&](double bound) {
    return static_cast<size_t>(std::clamp(std::round((bound + most_) / width), 0.0, static_cast<double>(kBins)));
  };
  std::pair<double, double> best = MinMax();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kBoundSteps; ++i) {
    const double low = low_ * (1 - (1 - kLeastShare) * i / kBoundSteps);
    const size_t from = index(low);
    // The sum of (v - low)^2 over the values below.
    const double below = squares[from] - 2 * low * sum[from] + low * low * count[from];
    for (int j = 0; j < kBoundSteps; ++j) {
      const double high = high_ * (1 - (1 - kLeastShare) * j / kBoundSteps);
      const size_t to = index(high);
      const double n = count[kBins] - count[to];
      const double above = squares[kBins] - squares[to] - 2 * high * (sum[kBins] - sum[to]) + high * high * n;
      const double step = (high - low) / steps;
      const double inside = std::max(0.0, count[to] - count[from]) * step * step / 12;
      const double error = std::max(0.0, below) + std::max(0.0, above) + inside;
      if (error < least) {
        least = error;
        best = {low, high};
      }
      if (high_ == 0) break;
    }
    if (low_ == 0) break;
  }
  return best;
}

absl::StatusOr<std::vector<TensorRange>> FindTensorRanges(const Graph& graph, absl::Span<const InputSet> inputs,
                                                          const SessionOptions& options) {
  PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(graph));
  PF_ASSIGN_OR_RETURN(const std::vector<QuantizableOperator> operators, FindQuantizableOperators(graph, shapes));
  std::vector<TensorRef> tensors;
  absl::flat_hash_set<TensorRef> seen;
  const auto add = [&](TensorRef ref) {
    if (!seen.insert(ref).second || FloatConstant(ref).has_value()) return;
    tensors.push_back(ref);
  };
  for (const QuantizableOperator& op : operators) {
    for (size_t i = 0; i < op.operands.size(); ++i) add(op.Operand(i));
    if (op.has_code_result) {
      add({op.root, 0});
      for (const Use& use : op.root->uses()) {
        const TensorRef read = use.consumer->input(static_cast<int>(use.index));
        if (!read.is_control()) add(read);
      }
    }
  }
  std::vector<ValueDistribution> distributions(tensors.size());
  PF_RETURN_IF_ERROR(VisitValues(graph, shapes, tensors, inputs, options,
                                 [&](size_t i, size_t /*set*/, const Tensor& value) { distributions[i].Add(value); }));
  constexpr int kSteps = 255;
  std::vector<TensorRange> ranges;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorRange range;
    range.tensor = tensors[i].ToString();
    for (const std::string& name : RangeMethodNames()) {
      PF_ASSIGN_OR_RETURN(const RangeMethod method, RangeMethodOf(name));
      range.ranges[method] = distributions[i].Range(method, kSteps);
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

std::string RangesText(absl::Span<const TensorRange> ranges, RangeMethod method) {
  std::string text;
  for (const TensorRange& range : ranges) {
    const auto found = range.ranges.find(method);
    if (found == range.ranges.end()) continue;
    absl::StrAppendFormat(&text, "%s %.9g %.9g\n", range.tensor, found->second.first, found->second.second);
  }
  return text;
}

}  // namespace permafrost

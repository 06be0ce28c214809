// Implements the moments of inputs, the compensated rounding, and its application to the operators of a graph.
#include "tools/transform/weight_rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/analysis/order.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "runtime_check/session.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/quantizable_operators.h"
#include "transforms/rewrites/rounded_constants.h"
#include "transforms/rewrites/weight_blocks.h"
#include "transforms/rewrites/weight_channels.h"

namespace permafrost {
namespace {

// Inputs of a product up to which covariances are kept, 64 MB, and up to which they are factorised, half a second of
// work.
constexpr int64_t kMostWidth = 4096, kMostFactorizedWidth = 1024;
// With fewer samples covariances say too little.
constexpr int64_t kLeastSamples = 48;
// Covariances of few samples are noisy: with inception_v3, codes that relied on them were worse than the nearest ones.
// So they are reduced by this share of width / samples.
constexpr double kShrinkage = 0.1;
// Sweeps of the coordinate descent; most change nothing after five.
constexpr int kMostSweeps = 8;
// Samples taken of each operator.
constexpr int64_t kFewSamples = 512, kMostSamples = 4096;
constexpr int64_t kMostBytes = int64_t{512} << 20;
// Share of the mean variance that is added to all: keeps the system well-posed, and the codes near the weights.
constexpr double kDamping = 0.01;
// Scales that are tried, relative to the one that represents the largest weight.
constexpr double kScaleShares[] = {1, 0.97, 0.94, 0.9, 0.86, 0.82, 0.77, 0.72, 0.66, 0.6};
constexpr float kScaleOfZero = 1.f / 127;

// Replaces the lower triangle of a symmetric matrix of n rows by its Cholesky factor. False if it is not positive.
bool Factorize(std::vector<double>* matrix, size_t n) {
  std::vector<double>& a = *matrix;
  for (size_t j = 0; j < n; ++j) {
    double* const row_j = &a[j * n];
    double diagonal = row_j[j];
    for (size_t k = 0; k < j; ++k) diagonal -= row_j[k] * row_j[k];
    if (!(diagonal > 0)) return false;
    row_j[j] = std::sqrt(diagonal);
    const double inverse = 1 / row_j[j];
    for (size_t i = j + 1; i < n; ++i) {
      double* const row_i = &a[i * n];
      double parts[4] = {0, 0, 0, 0};
      size_t k = 0;
      for (; k + 4 <= j; k += 4) {
        for (size_t p = 0; p < 4; ++p) parts[p] += row_i[k + p] * row_j[k + p];
      }
      double sum = parts[0] + parts[1] + parts[2] + parts[3];
      for (; k < j; ++k) sum += row_i[k] * row_j[k];
      row_i[j] = (row_i[j] - sum) * inverse;
    }
  }
  return true;
}

// Replaces a lower triangular matrix by its inverse.
void InvertTriangle(std::vector<double>* matrix, size_t n) {
  std::vector<double>& a = *matrix;
  std::vector<double> row(n);
  for (size_t i = 0; i < n; ++i) {
    // Row i of the inverse: -(sum over k < i of l[i][k] * inverse[k]) / l[i][i].
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t k = 0; k < i; ++k) {
      const double factor = a[i * n + k];
      const double* const from = &a[k * n];
      for (size_t j = 0; j <= k; ++j) row[j] += factor * from[j];
    }
    const double inverse = 1 / a[i * n + i];
    for (size_t j = 0; j < i; ++j) a[i * n + j] = -row[j] * inverse;
    a[i * n + i] = inverse;
  }
}

// Returns the covariance with reduced parts off the diagonal, plus `damping` on it.
std::vector<float> CovarianceOf(const InputMoments& moments, double damping) {
  const auto n = static_cast<size_t>(moments.width());
  const double shrinkage =
      std::min(1.0, kShrinkage * static_cast<double>(n) / static_cast<double>(std::max<int64_t>(1, moments.count())));
  std::vector<float> matrix(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double covariance = moments.covariance(static_cast<int64_t>(i), static_cast<int64_t>(j));
      matrix[i * n + j] = matrix[j * n + i] =
          static_cast<float>(i == j ? covariance + damping : covariance * (1 - shrinkage));
    }
  }
  return matrix;
}

// Rows of the upper triangular factor U of the inverse of the covariance C: inverse(C) = U^T U. Empty if it cannot be
// computed. From the factor of the matrix in reverse order, whose inverse, reversed again, is U.
std::vector<float> CompensationOf(const std::vector<float>& covariance, size_t n) {
  std::vector<double> matrix(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) matrix[i * n + j] = covariance[(n - 1 - i) * n + (n - 1 - j)];
  }
  if (!Factorize(&matrix, n)) return {};
  InvertTriangle(&matrix, n);
  std::vector<float> upper(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) upper[i * n + j] = static_cast<float>(matrix[(n - 1 - i) * n + (n - 1 - j)]);
  }
  return upper;
}

// Samples whose products are added at once: their factors fit in registers.
constexpr size_t kSamplesAtOnce = 8;

// Returns the code of the grid nearest to the weight; halves are rounded to even. The sum rounds, since floats of that
// magnitude are integers. Vectorised by the compiler, unlike std::nearbyint.
PF_INLINE inline float CodeOf(float weight, float scale, float lowest, float highest) {
  constexpr float kRound = 0x1.8p23f;
  const float code = std::min(std::max(weight / scale, lowest), highest);
  return (code + kRound) - kRound;
}

// Returns the least scale of the grid that is not below `scale`.
float OnGrid(double scale, const CodeGrid& grid) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  if (!(grid.coarse_unit > 0)) return std::max(static_cast<float>(scale), kLeast);
  // The upper sixteen bits of a float are a bfloat16.
  const float number = std::max(static_cast<float>(scale / grid.coarse_unit), 2 * kLeast);
  uint32_t pattern;
  std::memcpy(&pattern, &number, sizeof(pattern));
  pattern = (pattern + 0xffff) & 0xffff0000;
  float coarse;
  std::memcpy(&coarse, &pattern, sizeof(coarse));
  if (!std::isfinite(coarse)) return std::max(static_cast<float>(scale), kLeast);
  return static_cast<float>(coarse * grid.coarse_unit);
}

// Chooses the scales of all blocks by the error that they cause if each weight is rounded by itself.
std::vector<float> ChooseScales(absl::Span<const float> weights, size_t columns, absl::Span<const double> importance,
                                size_t block, const CodeGrid& grid) {
  const size_t width = importance.size();
  const auto lowest = static_cast<float>(grid.lowest), highest = static_cast<float>(grid.highest);
  std::vector<float> chosen(width / block * columns, kScaleOfZero);
  std::vector<float> largest(columns), smallest(columns), scales(columns);
  std::vector<double> least(columns), squares(columns);
  for (size_t g = 0; g < width / block; ++g) {
    std::fill(largest.begin(), largest.end(), 0.f);
    std::fill(smallest.begin(), smallest.end(), 0.f);
    for (size_t k = g * block; k < (g + 1) * block; ++k) {
      for (size_t c = 0; c < columns; ++c) {
        largest[c] = std::max(largest[c], weights[k * columns + c]);
        smallest[c] = std::min(smallest[c], weights[k * columns + c]);
      }
    }
    std::fill(least.begin(), least.end(), std::numeric_limits<double>::infinity());
    for (const double share : kScaleShares) {
      for (size_t c = 0; c < columns; ++c) {
        scales[c] = OnGrid(std::max<double>(largest[c] / highest, smallest[c] / lowest) * share, grid);
      }
      std::fill(squares.begin(), squares.end(), 0.0);
      for (size_t k = g * block; k < (g + 1) * block; ++k) {
        const float* const row = &weights[k * columns];
        const float* const scale = scales.data();
        double* const sums = squares.data();
        const double factor = importance[k];
        Multiversion([=]() PF_INLINE {
          for (size_t c = 0; c < columns; ++c) {
            const double difference = row[c] - CodeOf(row[c], scale[c], lowest, highest) * scale[c];
            sums[c] += difference * difference * factor;
          }
        });
      }
      for (size_t c = 0; c < columns; ++c) {
        if ((largest[c] == 0 && smallest[c] == 0) || !(squares[c] < least[c])) continue;
        least[c] = squares[c];
        chosen[g * columns + c] = scales[c];
      }
    }
  }
  return chosen;
}

// Adds `factor` times a row to another one.
void AddRow(const float* __restrict row, float factor, size_t size, float* __restrict to) {
  Multiversion([=]() PF_INLINE {
    for (size_t j = 0; j < size; ++j) to[j] += factor * row[j];
  });
}

// Lowers e^T C e for the errors e = weights - codes * scales of each column, one code at a time, until a sweep changes
// nothing. `neighbours_only`: codes stay next to their weights.
void Descend(absl::Span<const float> weights, size_t columns, const std::vector<float>& covariance, size_t block,
             const CodeGrid& grid, bool neighbours_only, RoundedWeights* rounded) {
  const size_t width = weights.size() / columns;
  std::vector<float> gradient(width);  // C e.
  for (size_t c = 0; c < columns; ++c) {
    std::fill(gradient.begin(), gradient.end(), 0.f);
    for (size_t k = 0; k < width; ++k) {
      const float scale = rounded->scales[k / block * columns + c];
      const float error = weights[k * columns + c] - static_cast<float>(rounded->codes[k * columns + c]) * scale;
      if (error != 0) AddRow(&covariance[k * width], error, width, gradient.data());
    }
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      size_t num_changes = 0;
      for (size_t k = 0; k < width; ++k) {
        const float scale = rounded->scales[k / block * columns + c];
        const auto code = static_cast<float>(rounded->codes[k * columns + c]);
        float wanted = std::nearbyint(code + gradient[k] / (covariance[k * width + k] * scale));
        if (neighbours_only) {
          const float below = std::floor(weights[k * columns + c] / scale);
          wanted = std::clamp(wanted, below, below + 1);
        }
        wanted = std::clamp(wanted, static_cast<float>(grid.lowest), static_cast<float>(grid.highest));
        if (!(wanted != code) || std::isnan(wanted)) continue;
        rounded->codes[k * columns + c] = static_cast<int8_t>(wanted);
        AddRow(&covariance[k * width], (code - wanted) * scale, width, gradient.data());
        ++num_changes;
      }
      if (num_changes == 0) break;
    }
  }
}

// Chooses codes one input at a time. `compensation` is that of CompensationOf.
void RoundInOrder(absl::Span<const float> weights, size_t columns, const std::vector<float>& compensation, size_t block,
                  const CodeGrid& grid, RoundedWeights* rounded) {
  const size_t width = weights.size() / columns;
  const auto lowest = static_cast<float>(grid.lowest), highest = static_cast<float>(grid.highest);
  std::vector<float> rest(weights.begin(), weights.end());
  std::vector<float> errors(columns);
  for (size_t k = 0; k < width; ++k) {
    const float* const row = &compensation[k * width];
    const float inverse = 1 / row[k];
    const float* const scales = &rounded->scales[k / block * columns];
    int8_t* const codes = &rounded->codes[k * columns];
    Multiversion([&]() PF_INLINE {
      const float* const from = &rest[k * columns];
      for (size_t c = 0; c < columns; ++c) {
        const float code = CodeOf(from[c], scales[c], lowest, highest);
        codes[c] = static_cast<int8_t>(code);
        errors[c] = (from[c] - code * scales[c]) * inverse;
      }
      for (size_t j = k + 1; j < width; ++j) {
        const float factor = row[j];
        float* const to = &rest[j * columns];
        for (size_t c = 0; c < columns; ++c) to[c] -= factor * errors[c];
      }
    });
  }
}

}  // namespace

InputMoments::InputMoments(int64_t width, bool has_products, bool has_shifts)
    : sums_(static_cast<size_t>(width), 0), squares_(static_cast<size_t>(width), 0) {
  if (has_products) products_.assign(sums_.size() * sums_.size(), 0.f);
  if (!has_shifts) return;
  shift_sums_.assign(sums_.size(), 0);
  if (width <= kMostFactorizedWidth) shift_products_.assign(products_.size(), 0.f);
}

void InputMoments::Add(const float* sample, const float* original) {
  const size_t n = sums_.size();
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(sample[i]) || (has_shifts() && !std::isfinite(original[i]))) return;
  }
  ++count_;
  for (size_t i = 0; i < n; ++i) {
    sums_[i] += sample[i];
    squares_[i] += static_cast<double>(sample[i]) * sample[i];
  }
  for (size_t i = 0; i < shift_sums_.size(); ++i) shift_sums_[i] += static_cast<double>(original[i]) - sample[i];
  if (products_.empty()) return;
  waiting_.insert(waiting_.end(), sample, sample + n);
  for (size_t i = 0; has_shift_products() && i < n; ++i) waiting_shifts_.push_back(original[i] - sample[i]);
  if (waiting_.size() == kSamplesAtOnce * n) Finish();
}

namespace {

// Adds the sum over samples of a[i] * b[j] to row i and column j >= first(i) of a matrix with n rows.
template <bool kUpper>
void AddProducts(const float* a, const float* b, size_t n, float* matrix) {
  Multiversion([=]() PF_INLINE {
    for (size_t i = 0; i < n; ++i) {
      float factors[kSamplesAtOnce];
      bool any = false;
      for (size_t s = 0; s < kSamplesAtOnce; ++s) {
        factors[s] = a[s * n + i];
        any |= factors[s] != 0;
      }
      if (!any) continue;
      float* const row = matrix + i * n;
      for (size_t j = kUpper ? i : 0; j < n; ++j) {
        float sum = 0;
        for (size_t s = 0; s < kSamplesAtOnce; ++s) sum += factors[s] * b[s * n + j];
        row[j] += sum;
      }
    }
  });
}

}  // namespace

void InputMoments::Finish() {
  if (waiting_.empty()) return;
  const size_t n = sums_.size();
  waiting_.resize(kSamplesAtOnce * n, 0.f);
  AddProducts<true>(waiting_.data(), waiting_.data(), n, products_.data());
  if (has_shift_products()) {
    waiting_shifts_.resize(kSamplesAtOnce * n, 0.f);
    AddProducts<false>(waiting_.data(), waiting_shifts_.data(), n, shift_products_.data());
    waiting_shifts_.clear();
  }
  waiting_.clear();
}

void InputMoments::Merge(const InputMoments& other) {
  const auto add = [](const auto& from, auto* to) {
    for (size_t i = 0; i < to->size(); ++i) (*to)[i] += from[i];
  };
  count_ += other.count_;
  add(other.sums_, &sums_);
  add(other.squares_, &squares_);
  add(other.products_, &products_);
  add(other.shift_sums_, &shift_sums_);
  add(other.shift_products_, &shift_products_);
}

double InputMoments::covariance(int64_t i, int64_t j) const {
  if (count_ == 0) return 0;
  const auto a = static_cast<size_t>(std::min(i, j)), b = static_cast<size_t>(std::max(i, j));
  const double n = static_cast<double>(count_);
  if (a == b) return std::max(0.0, squares_[a] / n - mean(i) * mean(i));
  return products_.empty() ? 0 : products_[a * sums_.size() + b] / n - mean(i) * mean(j);
}

double InputMoments::shift_covariance(int64_t i, int64_t j) const {
  if (count_ == 0) return 0;
  const auto at = static_cast<size_t>(i) * sums_.size() + static_cast<size_t>(j);
  return shift_products_[at] / static_cast<double>(count_) - mean(i) * mean_shift(j);
}

namespace {

// Quantities that rounding derives from the moments.
struct Statistics {
  std::vector<double> importance;  // Of each input: the damped variance.
  std::vector<float> covariance;   // Damped; empty if there are too few samples.
};

Statistics StatisticsOf(const InputMoments& moments, RoundingMethod method) {
  const auto width = static_cast<size_t>(moments.width());
  Statistics result;
  result.importance.resize(width);
  double mean_variance = 0;
  for (size_t k = 0; k < width; ++k) {
    result.importance[k] = moments.covariance(static_cast<int64_t>(k), static_cast<int64_t>(k));
    mean_variance += result.importance[k] / static_cast<double>(width);
  }
  // Fewer samples than inputs say less.
  const double shortage = static_cast<double>(width) / static_cast<double>(std::max<int64_t>(1, moments.count()));
  double damping = kDamping * (1 + shortage) * mean_variance;
  if (!(damping > 0)) damping = 1;
  for (double& each : result.importance) each += damping;
  if (method != RoundingMethod::kNearest && moments.has_products() && moments.count() >= kLeastSamples &&
      mean_variance > 0) {
    result.covariance = CovarianceOf(moments, damping);
  }
  return result;
}

// Rounds `wanted`. The corrections are left open.
RoundedWeights RoundTo(absl::Span<const float> wanted, size_t columns, const Statistics& statistics,
                       const CodeGrid& grid, RoundingMethod method) {
  const size_t width = statistics.importance.size();
  const size_t block = grid.block > 0 ? static_cast<size_t>(grid.block) : width;
  RoundedWeights result;
  result.scales = ChooseScales(wanted, columns, statistics.importance, block, grid);
  result.codes.resize(wanted.size());
  for (size_t k = 0; k < width; ++k) {
    for (size_t c = 0; c < columns; ++c) {
      result.codes[k * columns + c] =
          static_cast<int8_t>(CodeOf(wanted[k * columns + c], result.scales[k / block * columns + c],
                                     static_cast<float>(grid.lowest), static_cast<float>(grid.highest)));
    }
  }
  if (statistics.covariance.empty()) return result;
  if (method != RoundingMethod::kAdaRound && width <= static_cast<size_t>(kMostFactorizedWidth)) {
    const std::vector<float> compensation = CompensationOf(statistics.covariance, width);
    if (!compensation.empty()) RoundInOrder(wanted, columns, compensation, block, grid, &result);
  }
  if (method != RoundingMethod::kGptq) {
    Descend(wanted, columns, statistics.covariance, block, grid, method == RoundingMethod::kAdaRound, &result);
  }
  return result;
}

// Adds (weights - rounded weights) * means of the inputs to the corrections.
void CorrectMeans(absl::Span<const float> weights, size_t columns, const InputMoments& moments, const CodeGrid& grid,
                  RoundedWeights* rounded) {
  const auto width = static_cast<size_t>(moments.width());
  const size_t block = grid.block > 0 ? static_cast<size_t>(grid.block) : width;
  rounded->corrections.resize(columns, 0.f);
  for (size_t c = 0; c < columns; ++c) {
    double sum = 0;
    for (size_t k = 0; k < width; ++k) {
      const double number =
          static_cast<double>(rounded->codes[k * columns + c]) * rounded->scales[k / block * columns + c];
      sum += (weights[k * columns + c] - number) * moments.mean(static_cast<int64_t>(k));
    }
    rounded->corrections[c] += static_cast<float>(sum);
  }
}

// Replaces `columns` right sides by the solutions of C x = right, with the factor of C.
void Solve(const std::vector<double>& factor, size_t n, size_t columns, std::vector<float>* right) {
  std::vector<float>& x = *right;
  for (size_t i = 0; i < n; ++i) {
    float* const to = &x[i * columns];
    for (size_t k = 0; k < i; ++k) AddRow(&x[k * columns], static_cast<float>(-factor[i * n + k]), columns, to);
    const auto inverse = static_cast<float>(1 / factor[i * n + i]);
    for (size_t c = 0; c < columns; ++c) to[c] *= inverse;
  }
  for (size_t i = n; i-- > 0;) {
    float* const to = &x[i * columns];
    for (size_t k = i + 1; k < n; ++k) AddRow(&x[k * columns], static_cast<float>(-factor[k * n + i]), columns, to);
    const auto inverse = static_cast<float>(1 / factor[i * n + i]);
    for (size_t c = 0; c < columns; ++c) to[c] *= inverse;
  }
}

// Returns the covariance of the inputs with what the products lack: one row for each input.
std::vector<float> LackOfProducts(absl::Span<const float> weights, size_t columns, const InputMoments& moments) {
  const auto n = static_cast<size_t>(moments.width());
  std::vector<float> lack(n * columns, 0.f);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const double covariance = moments.shift_covariance(static_cast<int64_t>(i), static_cast<int64_t>(j));
      if (covariance != 0) AddRow(&weights[j * columns], static_cast<float>(covariance), columns, &lack[i * columns]);
    }
  }
  return lack;
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Returns what is added to the weights so that they make up for the shifts of their inputs: the solution of least
// squares, of which as much is taken as reduces the error of one half of the samples if it is learnt from the other.
// Empty if it cannot be computed.
std::vector<float> CompensationForShifts(absl::Span<const float> weights, size_t columns,
                                         const std::array<InputMoments, 2>& halves, const InputMoments& all,
                                         const std::vector<float>& covariance) {
  const auto n = static_cast<size_t>(all.width());
  std::vector<float> lacks[2], found[2];
  for (const size_t half : {0, 1}) {
    const Statistics statistics = StatisticsOf(halves[half], RoundingMethod::kDescent);
    if (statistics.covariance.empty()) return {};
    std::vector<double> factor(statistics.covariance.begin(), statistics.covariance.end());
    if (!Factorize(&factor, n)) return {};
    lacks[half] = LackOfProducts(weights, columns, halves[half]);
    found[half] = lacks[half];
    Solve(factor, n, columns, &found[half]);
  }
  // The part of the solution of a half that is best for the other half.
  double gained = 0, power = 0;
  for (const size_t half : {0, 1}) {
    const InputMoments& other = halves[1 - half];
    gained += Dot(found[half], lacks[1 - half]);
    std::vector<float> product(n * columns, 0.f);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const double each = other.covariance(static_cast<int64_t>(i), static_cast<int64_t>(j));
        if (each != 0) {
          AddRow(&found[half][j * columns], static_cast<float>(each), columns, &product[i * columns]);
        }
      }
    }
    power += Dot(found[half], product);
  }
  const double part = std::clamp(gained / power, 0.0, 1.0);
  if (!(part > 0)) return {};
  std::vector<double> factor(covariance.begin(), covariance.end());
  if (!Factorize(&factor, n)) return {};
  std::vector<float> added = LackOfProducts(weights, columns, all);
  Solve(factor, n, columns, &added);
  for (float& each : added) {
    each *= static_cast<float>(part);
    if (!std::isfinite(each)) return {};
  }
  return added;
}

}  // namespace

RoundedWeights RoundForInputs(absl::Span<const float> weights, int64_t channels, const InputMoments& moments,
                              const CodeGrid& grid, RoundingMethod method) {
  const auto columns = static_cast<size_t>(channels);
  RoundedWeights result = RoundTo(weights, columns, StatisticsOf(moments, method), grid, method);
  CorrectMeans(weights, columns, moments, grid, &result);
  return result;
}

RoundedWeights RoundForShiftedInputs(absl::Span<const float> weights, int64_t channels,
                                     std::array<InputMoments, 2> halves, const CodeGrid& grid, RoundingMethod method) {
  const auto columns = static_cast<size_t>(channels), width = static_cast<size_t>(halves[0].width());
  InputMoments all = halves[0];
  all.Merge(halves[1]);
  const Statistics statistics = StatisticsOf(all, method);
  std::vector<float> wanted(weights.begin(), weights.end());
  if (!statistics.covariance.empty() && all.has_shift_products()) {
    const std::vector<float> added = CompensationForShifts(weights, columns, halves, all, statistics.covariance);
    for (size_t i = 0; i < added.size(); ++i) wanted[i] += added[i];
  }
  RoundedWeights result = RoundTo(wanted, columns, statistics, grid, method);
  CorrectMeans(weights, columns, all, grid, &result);
  // The mean of what the products lack, as far as both halves of the samples agree about it.
  std::vector<float> means[2];
  for (const size_t half : {0, 1}) {
    means[half].assign(columns, 0.f);
    for (size_t k = 0; k < width; ++k) {
      AddRow(&weights[k * columns], static_cast<float>(halves[half].mean_shift(static_cast<int64_t>(k))), columns,
             means[half].data());
    }
  }
  // The variance of the mean of two is half of theirs.
  const double agreed = std::max(0.0, Dot(means[0], means[1]));
  const double power = (Dot(means[0], means[0]) + Dot(means[1], means[1])) / 2;
  const bool has_both = halves[0].count() > 0 && halves[1].count() > 0;
  const double part = !has_both ? 1 : power > 0 ? agreed / (agreed + std::max(0.0, power - agreed) / 2) : 0;
  for (size_t c = 0; c < columns; ++c) {
    double mean = 0;
    for (size_t k = 0; k < width; ++k) mean += weights[k * columns + c] * all.mean_shift(static_cast<int64_t>(k));
    result.corrections[c] += static_cast<float>(part * mean);
  }
  return result;
}

namespace {

// The windows of a convolution, or the rows of a matrix.
struct Windows {
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  bool is_same = false;
};

absl::StatusOr<Windows> WindowsOf(const Node& core, const Shape& filter) {
  Windows windows;
  if (core.op() == ops::kMatMul || core.op() == ops::kBatchMatMulV2) return windows;
  windows.kernel_h = filter.dim(0);
  windows.kernel_w = filter.dim(1);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntListAttr(core, "strides"));
  const absl::StatusOr<std::vector<int64_t>> dilations = IntListAttr(core, "dilations");
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(core, "padding"));
  if (strides.size() != 4 || (padding != "SAME" && padding != "VALID")) {
    return absl::UnimplementedError("has other windows");
  }
  windows.stride_h = strides[1];
  windows.stride_w = strides[2];
  if (dilations.ok() && dilations->size() == 4) {
    windows.dilation_h = (*dilations)[1];
    windows.dilation_w = (*dilations)[2];
  }
  windows.is_same = padding == "SAME";
  if (windows.stride_h < 1 || windows.stride_w < 1 || windows.dilation_h < 1 || windows.dilation_w < 1) {
    return absl::UnimplementedError("has other windows");
  }
  return windows;
}

// One operator whose weights are rounded.
struct Job {
  const QuantizableOperator* op = nullptr;
  Tensor weights;
  Windows windows;
  bool is_depthwise = false;
  int64_t width = 0, channels = 0;  // Of each product; depthwise: `channels` results of each input channel.
  int64_t samples_per_set = 0;
  // One, or one for each input channel, of all samples. With shifts: of the first half and of the second half.
  std::vector<InputMoments> moments, second_half;
  std::string text;
};

// Adds samples of the input `x` to the moments. `original` is the same input in the original model, or null. Then the
// samples of set `set` of `num_sets` are added to one of the halves.
void AddSamples(const Tensor& x, const Tensor* original, size_t set, size_t num_sets, Job* job) {
  const Shape& shape = x.shape();
  if (original != nullptr && original->num_elements() != x.num_elements()) return;
  std::vector<UnalignedSpan<float>> sources = {x.elements<float>()};
  if (original != nullptr) sources.push_back(original->elements<float>());
  const auto width_of_sample = static_cast<size_t>(job->width);
  std::vector<std::vector<float>> samples(2, std::vector<float>(width_of_sample));
  const auto add = [&](size_t i, int64_t s, int64_t count) {
    const bool is_second = original != nullptr && (num_sets > 1 ? set % 2 == 1 : 2 * s >= count);
    (is_second ? job->second_half : job->moments)[i].Add(samples[0].data(),
                                                         original != nullptr ? samples[1].data() : nullptr);
  };
  if (shape.rank() != 4 || job->op->core->op() == ops::kMatMul || job->op->core->op() == ops::kBatchMatMulV2) {
    const int64_t rows = x.num_elements() / job->width;
    const int64_t count = std::min(rows, job->samples_per_set);
    for (int64_t s = 0; s < count; ++s) {
      const int64_t row = s * rows / count;
      for (size_t source = 0; source < sources.size(); ++source) {
        for (size_t k = 0; k < width_of_sample; ++k) {
          samples[source][k] = sources[source][static_cast<size_t>(row * job->width) + k];
        }
      }
      add(0, s, count);
    }
    return;
  }
  const Windows& w = job->windows;
  const int64_t batch = shape.dim(0), height = shape.dim(1), width = shape.dim(2), depth = shape.dim(3);
  const int64_t reach_h = (w.kernel_h - 1) * w.dilation_h + 1, reach_w = (w.kernel_w - 1) * w.dilation_w + 1;
  const auto outputs = [&](int64_t in, int64_t reach, int64_t stride) {
    return w.is_same ? (in + stride - 1) / stride : in < reach ? 0 : (in - reach) / stride + 1;
  };
  const int64_t out_h = outputs(height, reach_h, w.stride_h), out_w = outputs(width, reach_w, w.stride_w);
  const auto before = [&](int64_t in, int64_t out, int64_t reach, int64_t stride) {
    return w.is_same ? std::max<int64_t>(0, (out - 1) * stride + reach - in) / 2 : int64_t{0};
  };
  const int64_t top = before(height, out_h, reach_h, w.stride_h), left = before(width, out_w, reach_w, w.stride_w);
  const int64_t places = batch * out_h * out_w;
  const int64_t count = std::min(places, job->samples_per_set);
  const int64_t taps = w.kernel_h * w.kernel_w;
  std::vector<std::vector<float>> windows(2, std::vector<float>(static_cast<size_t>(taps * depth)));
  for (int64_t s = 0; s < count; ++s) {
    const int64_t place = s * places / count;
    const int64_t image = place / (out_h * out_w), y = place / out_w % out_h, z = place % out_w;
    for (size_t source = 0; source < sources.size(); ++source) {
      for (int64_t i = 0; i < w.kernel_h; ++i) {
        for (int64_t j = 0; j < w.kernel_w; ++j) {
          const int64_t row = y * w.stride_h - top + i * w.dilation_h,
                        column = z * w.stride_w - left + j * w.dilation_w;
          float* const to = &windows[source][static_cast<size_t>((i * w.kernel_w + j) * depth)];
          if (row < 0 || row >= height || column < 0 || column >= width) {
            std::fill(to, to + depth, 0.f);
            continue;
          }
          const auto from = static_cast<size_t>(((image * height + row) * width + column) * depth);
          for (int64_t d = 0; d < depth; ++d) to[d] = sources[source][from + static_cast<size_t>(d)];
        }
      }
    }
    if (!job->is_depthwise) {
      std::swap(samples, windows);
      add(0, s, count);
      std::swap(samples, windows);
      continue;
    }
    for (int64_t d = 0; d < depth; ++d) {
      for (size_t source = 0; source < sources.size(); ++source) {
        for (int64_t t = 0; t < taps; ++t) {
          samples[source][static_cast<size_t>(t)] = windows[source][static_cast<size_t>(t * depth + d)];
        }
      }
      add(static_cast<size_t>(d), s, count);
    }
  }
}

// Rounds the weights [input][result] of the products of input channel `d`.
RoundedWeights RoundProducts(absl::Span<const float> weights, size_t d, const CodeGrid& grid, RoundingMethod method,
                             const Job& job) {
  if (job.second_half.empty()) return RoundForInputs(weights, job.channels, job.moments[d], grid, method);
  return RoundForShiftedInputs(weights, job.channels, {job.moments[d], job.second_half[d]}, grid, method);
}

// Rounds the weights of an operator. Codes are in the layout of the weights, scales by block and channel.
RoundedWeights RoundJob(const CodeGrid& grid, RoundingMethod method, Job* job) {
  const UnalignedSpan<float> elements = job->weights.elements<float>();
  const auto width = static_cast<size_t>(job->width), channels = static_cast<size_t>(job->channels);
  RoundedWeights result;
  if (job->is_depthwise) {
    // [taps, inputs x multiplier].
    const size_t inputs = job->moments.size(), all = inputs * channels;
    result.codes.resize(elements.size());
    result.scales.resize(all);
    result.corrections.resize(all);
    std::vector<float> part(width * channels);
    for (size_t d = 0; d < inputs; ++d) {
      for (size_t t = 0; t < width; ++t) {
        for (size_t m = 0; m < channels; ++m) part[t * channels + m] = elements[t * all + d * channels + m];
      }
      const RoundedWeights rounded = RoundProducts(part, d, grid, method, *job);
      for (size_t t = 0; t < width; ++t) {
        for (size_t m = 0; m < channels; ++m) {
          result.codes[t * all + d * channels + m] = rounded.codes[t * channels + m];
        }
      }
      for (size_t m = 0; m < channels; ++m) {
        result.scales[d * channels + m] = rounded.scales[m];
        result.corrections[d * channels + m] = rounded.corrections[m];
      }
    }
  } else {
    const Node& core = *job->op->core;
    const bool is_matrix = core.op() == ops::kMatMul || core.op() == ops::kBatchMatMulV2;
    const bool is_transposed =
        is_matrix && BoolAttr(core, core.op() == ops::kMatMul ? "transpose_b" : "adj_y").value_or(false);
    std::vector<float> matrix(elements.size());
    const auto index = [&](size_t k, size_t c) { return is_transposed ? c * width + k : k * channels + c; };
    for (size_t k = 0; k < width; ++k) {
      for (size_t c = 0; c < channels; ++c) matrix[k * channels + c] = elements[index(k, c)];
    }
    RoundedWeights rounded = RoundProducts(matrix, 0, grid, method, *job);
    result.codes.resize(elements.size());
    for (size_t k = 0; k < width; ++k) {
      for (size_t c = 0; c < channels; ++c) result.codes[index(k, c)] = rounded.codes[k * channels + c];
    }
    result.scales = std::move(rounded.scales);
    result.corrections = std::move(rounded.corrections);
  }
  job->moments.clear();
  job->second_half.clear();
  return result;
}

// Returns the operator as a job, or Unimplemented.
absl::StatusOr<Job> JobOf(const QuantizableOperator& op, const ShapeMap& shapes, size_t num_sets, RoundingMethod method,
                          bool has_shifts) {
  Job job;
  job.op = &op;
  const Node& core = *op.core;
  if (core.op() == ops::kConv2DBackpropInput) return absl::UnimplementedError("scatters its inputs");
  job.weights = *FloatConstant(core.input(op.weights));
  const Shape& shape = job.weights.shape();
  PF_ASSIGN_OR_RETURN(job.windows, WindowsOf(core, shape));
  job.is_depthwise = core.op() == ops::kDepthwiseConv2dNative;
  size_t num_moments = 1;
  if (job.is_depthwise) {
    job.width = shape.dim(0) * shape.dim(1);
    job.channels = shape.dim(3);
    num_moments = static_cast<size_t>(shape.dim(2));
    const Shape input = shapes.Of(core.input(0));
    if (!input.has_rank() || input.rank() != 4 || input.dim(3) != shape.dim(2)) {
      return absl::UnimplementedError("has an input of unknown channels");
    }
  } else if (core.op() == ops::kConv2D) {
    const Shape input = shapes.Of(core.input(0));
    if (!input.has_rank() || input.rank() != 4 || input.dim(3) != shape.dim(2)) {
      return absl::UnimplementedError("has groups");
    }
    job.width = shape.dim(0) * shape.dim(1) * shape.dim(2);
    job.channels = shape.dim(3);
  } else {
    const bool is_transposed = BoolAttr(core, core.op() == ops::kMatMul ? "transpose_b" : "adj_y").value_or(false);
    if (BoolAttr(core, core.op() == ops::kMatMul ? "transpose_a" : "adj_x").value_or(false)) {
      return absl::UnimplementedError("transposes its input");
    }
    job.width = shape.dim(is_transposed ? 1 : 0);
    job.channels = shape.dim(is_transposed ? 0 : 1);
  }
  if (job.width < 1 || job.channels < 1) return absl::UnimplementedError("has no weights");
  // The samples that there are: one for each place of the result.
  const Shape result = shapes.Of({op.core, 0});
  int64_t places = static_cast<int64_t>(num_sets);
  for (int i = 0; result.has_rank() && i + 1 < result.rank(); ++i) places *= std::max<int64_t>(1, result.dim(i));
  const bool has_products = method != RoundingMethod::kNearest && job.width <= kMostWidth && places >= kLeastSamples;
  const int64_t samples = std::clamp(4 * job.width, kFewSamples, kMostSamples);
  job.samples_per_set = std::max<int64_t>(1, samples / static_cast<int64_t>(std::max<size_t>(1, num_sets)));
  job.moments.assign(num_moments, InputMoments(job.width, has_products, has_shifts));
  if (has_shifts) job.second_half = job.moments;
  return job;
}

// Makes jobs of the operators for which `wants` is true, collects their moments, and calls `finish` for each, in order
// for the jobs that are finished together and by several threads. As many are finished together as fit into kMostBytes.
// `quantized`, unless null, has tensors of the same names, from which the inputs of the operators come; those of
// `graph` are then what they should be. Returns their texts.
absl::StatusOr<std::string> FinishJobs(const Graph& graph, const Graph* quantized, absl::Span<const InputSet> inputs,
                                       const SessionOptions& options, RoundingMethod method, int num_threads,
                                       const std::function<bool(const QuantizableOperator&)>& wants,
                                       const std::function<void(Job*)>& finish) {
  PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(graph));
  PF_ASSIGN_OR_RETURN(const std::vector<QuantizableOperator> operators, FindQuantizableOperators(graph, shapes));
  std::vector<std::string> feeds;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  ThreadTeam team(num_threads);
  std::string text;
  for (size_t next = 0; next < operators.size();) {
    std::vector<Job> jobs;
    std::vector<std::string> fetches;
    int64_t bytes = 0;
    for (; next < operators.size() && (jobs.empty() || bytes < kMostBytes); ++next) {
      const QuantizableOperator& op = operators[next];
      if (op.kind != QuantizableKind::kWeighted || !wants(op)) continue;
      absl::StatusOr<Job> job = JobOf(op, shapes, inputs.size(), method, quantized != nullptr);
      if (!job.ok()) continue;
      const Shape input = shapes.Of(op.Operand(0));
      int64_t elements = 1;
      for (int i = 0; input.has_rank() && i < input.rank(); ++i) elements *= std::max<int64_t>(1, input.dim(i));
      bytes += elements * static_cast<int64_t>(sizeof(float));
      if (job->moments[0].has_products()) {
        bytes += static_cast<int64_t>(job->moments.size()) * job->width * job->width *
                 static_cast<int64_t>(sizeof(float)) * (quantized != nullptr ? 4 : 1);
      }
      fetches.push_back(op.Operand(0).ToString());
      jobs.push_back(*std::move(job));
    }
    if (jobs.empty()) break;
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
    std::unique_ptr<Session> quantized_session;
    if (quantized != nullptr) {
      PF_ASSIGN_OR_RETURN(quantized_session, Session::Create(*quantized, feeds, fetches, options));
    }
    for (size_t set = 0; set < inputs.size(); ++set) {
      PF_ASSIGN_OR_RETURN(std::vector<Tensor> values, session->Run(inputs[set]));
      std::vector<Tensor> originals;
      if (quantized != nullptr) {
        originals = std::move(values);
        PF_ASSIGN_OR_RETURN(values, quantized_session->Run(inputs[set]));
      }
      team.ForEach(jobs.size(), [&](size_t i) {
        if (values[i].num_elements() == 0) return;
        AddSamples(values[i], originals.empty() ? nullptr : &originals[i], set, inputs.size(), &jobs[i]);
      });
    }
    team.ForEach(jobs.size(), [&](size_t i) {
      int64_t count = 0;
      for (std::vector<InputMoments>* all : {&jobs[i].moments, &jobs[i].second_half}) {
        for (InputMoments& moments : *all) {
          moments.Finish();
          count += moments.count();
        }
      }
      if (count > 0) finish(&jobs[i]);
    });
    for (const Job& job : jobs) text += job.text;
  }
  return text;
}

// Returns for each node the number of weighted operators on the longest path to it, with itself.
absl::flat_hash_map<const Node*, int> LevelsOf(const std::vector<Node*>& order,
                                               const std::vector<QuantizableOperator>& operators) {
  absl::flat_hash_set<const Node*> cores;
  for (const QuantizableOperator& op : operators) {
    if (op.kind == QuantizableKind::kWeighted) cores.insert(op.core);
  }
  absl::flat_hash_map<const Node*, int> levels;
  for (const Node* node : order) {
    int level = 0;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const auto found = levels.find(node->input(i).node);
      if (found != levels.end()) level = std::max(level, found->second);
    }
    levels[node] = level + (cores.contains(node) ? 1 : 0);
  }
  return levels;
}

// Writes the lines of quantize_for_tflite for the operator of a job.
void WriteLines(const WeightRoundingSettings& settings, Job* job) {
  constexpr int kInt8Steps = 127, kInt4Steps = 7;
  const int steps = settings.mode == "int4" && !job->is_depthwise ? kInt4Steps : kInt8Steps;
  CodeGrid grid;
  grid.lowest = -steps;
  grid.highest = steps;
  const RoundedWeights rounded = RoundJob(grid, settings.method, job);
  const absl::string_view name = job->op->root->name();
  absl::StrAppend(&job->text, "@scales ", name);
  for (const float scale : rounded.scales) absl::StrAppendFormat(&job->text, " %.9g", scale);
  if (settings.corrects_biases) {
    absl::StrAppend(&job->text, "\n@bias ", name);
    for (const float correction : rounded.corrections) absl::StrAppendFormat(&job->text, " %.9g", correction);
  }
  const absl::string_view codes(reinterpret_cast<const char*>(rounded.codes.data()), rounded.codes.size());
  absl::StrAppend(&job->text, "\n@codes ", name, " ", absl::Base64Escape(codes), "\n");
}

// Returns the constant if `reader` alone reads it, directly or through Identity nodes; otherwise null.
const Node* OwnConstant(TensorRef ref) {
  const Node* constant = ref.node == nullptr ? nullptr : ConstantBehind(ref);
  for (const Node* at = ref.node; constant != nullptr; at = at->input(0).node) {
    int64_t num_reads = 0;
    for (const Use& use : at->uses())
      num_reads += use.consumer->input(static_cast<int>(use.index)).is_control() ? 0 : 1;
    if (num_reads != 1) return nullptr;
    if (at == constant) break;
  }
  return constant;
}

using QuantizeGraph = std::function<absl::StatusOr<std::unique_ptr<Graph>>(const std::string& text)>;

// Finishes the jobs of one level of operators after the other, with the inputs that they have in the graph that
// `quantize` makes of the texts so far. Returns the texts.
absl::StatusOr<std::string> FinishInSequence(const Graph& graph, absl::Span<const InputSet> inputs,
                                             const SessionOptions& options, RoundingMethod method, int num_threads,
                                             const QuantizeGraph& quantize,
                                             const std::function<bool(const QuantizableOperator&)>& wants,
                                             const std::function<void(Job*)>& finish) {
  PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(graph));
  PF_ASSIGN_OR_RETURN(const std::vector<QuantizableOperator> operators, FindQuantizableOperators(graph, shapes));
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(graph));
  const absl::flat_hash_map<const Node*, int> levels = LevelsOf(order, operators);
  std::set<int> used;
  for (const QuantizableOperator& op : operators) {
    if (op.kind == QuantizableKind::kWeighted && wants(op)) used.insert(levels.at(op.core));
  }
  std::string text;
  for (const int level : used) {
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> quantized, quantize(text));
    PF_ASSIGN_OR_RETURN(
        const std::string lines,
        FinishJobs(
            graph, quantized.get(), inputs, options, method, num_threads,
            [&](const QuantizableOperator& op) { return levels.at(op.core) == level && wants(op); }, finish));
    text += lines;
  }
  return text;
}

// Stores the constants of which `text` has lines as codes.
absl::StatusOr<std::unique_ptr<Graph>> WithRoundedConstants(const Graph& graph, const std::string& text,
                                                            const ConstantRoundingSettings& settings) {
  std::unique_ptr<Graph> quantized = graph.Clone();
  PassCall call;
  call.name = "quantize_weights";
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    if (fields.size() > 1) call.arguments.push_back({"only_node", fields[1]});
  }
  if (call.arguments.empty()) return quantized;
  for (auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"bits", absl::StrCat(settings.bits)},
           {"block", absl::StrCat(settings.bits == 4 ? settings.block : 0)},
           {"per_channel", "true"},
           {"minimum_size", "1"},
           {"calibration", "the calibration"}}) {
    call.arguments.push_back({name, value});
  }
  PassContext context;
  context.num_threads = settings.num_threads;
  context.read_file = [&](absl::string_view) -> absl::StatusOr<std::string> { return text; };
  PF_RETURN_IF_ERROR(RunPipeline(&quantized, {call}, &context).status());
  return quantized;
}

}  // namespace

absl::StatusOr<std::string> RoundedWeightsText(const Graph& graph, absl::Span<const InputSet> inputs,
                                               const SessionOptions& options, const WeightRoundingSettings& settings) {
  return FinishJobs(
      graph, nullptr, inputs, options, settings.method, settings.num_threads,
      [](const QuantizableOperator&) { return true; }, [&](Job* job) { WriteLines(settings, job); });
}

absl::StatusOr<std::string> WeightsRoundedInSequence(
    const Graph& graph, absl::Span<const InputSet> inputs, const SessionOptions& options,
    const WeightRoundingSettings& settings,
    const std::function<absl::StatusOr<std::unique_ptr<Graph>>(const std::string& text)>& quantize) {
  return FinishInSequence(
      graph, inputs, options, settings.method, settings.num_threads, quantize,
      [](const QuantizableOperator&) { return true; }, [&](Job* job) { WriteLines(settings, job); });
}

absl::StatusOr<std::string> RoundedConstantsText(const Graph& graph, absl::Span<const InputSet> inputs,
                                                 const SessionOptions& options,
                                                 const ConstantRoundingSettings& settings) {
  const auto constant_of = [](const QuantizableOperator& op) { return OwnConstant(op.core->input(op.weights)); };
  const auto wants = [&](const QuantizableOperator& op) { return constant_of(op) != nullptr; };
  const auto finish = [&](Job* job) {
    const Node& constant = *constant_of(*job->op);
    const Shape& shape = job->weights.shape();
    const WeightChannels channels = FindWeightChannels(constant, shape);
    const int64_t ranges = job->channels * (job->is_depthwise ? static_cast<int64_t>(job->moments.size()) : 1);
    // Depthwise convolutions with a multiplier have one range for all results of an input channel.
    if (channels.dim < 0 || shape.dim(channels.dim) != ranges) return;
    RoundedConstant rounded;
    rounded.bits = settings.bits;
    rounded.block = settings.block;
    CodeGrid grid;
    if (settings.bits == 4) {
      grid.lowest = -8;
      grid.highest = 7;
      const std::optional<WeightBlocks> blocks = FindWeightBlocks(shape, channels.dim, settings.block);
      if (blocks.has_value() && !job->is_depthwise) grid.block = blocks->block;
    }
    grid.coarse_unit = grid.block > 0 ? 1 : UnitOfRange(settings.bits);
    RoundedWeights codes = RoundJob(grid, settings.method, job);
    for (const float scale : codes.scales) {
      rounded.ranges.push_back(static_cast<float>(scale / grid.coarse_unit));
    }
    rounded.codes = std::move(codes.codes);
    const Node* bias = job->op->bias.node == nullptr ? nullptr : OwnConstant(job->op->bias);
    if (bias != nullptr && FloatConstant({const_cast<Node*>(bias), 0})->num_elements() == ranges) {
      rounded.bias = std::string(bias->name());
      rounded.corrections = std::move(codes.corrections);
    }
    job->text = RoundedConstantLine(constant.name(), rounded);
  };
  if (settings.method == RoundingMethod::kSequential) {
    return FinishInSequence(
        graph, inputs, options, settings.method, settings.num_threads,
        [&](const std::string& text) { return WithRoundedConstants(graph, text, settings); }, wants, finish);
  }
  return FinishJobs(graph, nullptr, inputs, options, settings.method, settings.num_threads, wants, finish);
}

}  // namespace permafrost

// Implements the moments of inputs, the compensated rounding, and its application to the operators of a graph.
#include "tools/transform/weight_rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "runtime_check/session.h"
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

InputMoments::InputMoments(int64_t width, bool has_products)
    : sums_(static_cast<size_t>(width), 0), squares_(static_cast<size_t>(width), 0) {
  if (has_products) products_.assign(sums_.size() * sums_.size(), 0.f);
}

void InputMoments::Add(const float* sample) {
  const size_t n = sums_.size();
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(sample[i])) return;
  }
  ++count_;
  for (size_t i = 0; i < n; ++i) {
    sums_[i] += sample[i];
    squares_[i] += static_cast<double>(sample[i]) * sample[i];
  }
  if (products_.empty()) return;
  waiting_.insert(waiting_.end(), sample, sample + n);
  if (waiting_.size() == kSamplesAtOnce * n) Finish();
}

void InputMoments::Finish() {
  if (waiting_.empty()) return;
  const size_t n = sums_.size();
  waiting_.resize(kSamplesAtOnce * n, 0.f);
  const float* const samples = waiting_.data();
  float* const products = products_.data();
  Multiversion([=]() PF_INLINE {
    for (size_t i = 0; i < n; ++i) {
      float factors[kSamplesAtOnce];
      bool any = false;
      for (size_t s = 0; s < kSamplesAtOnce; ++s) {
        factors[s] = samples[s * n + i];
        any |= factors[s] != 0;
      }
      if (!any) continue;
      float* const row = products + i * n;
      for (size_t j = i; j < n; ++j) {
        float sum = 0;
        for (size_t s = 0; s < kSamplesAtOnce; ++s) sum += factors[s] * samples[s * n + j];
        row[j] += sum;
      }
    }
  });
  waiting_.clear();
}

double InputMoments::covariance(int64_t i, int64_t j) const {
  if (count_ == 0) return 0;
  const auto a = static_cast<size_t>(std::min(i, j)), b = static_cast<size_t>(std::max(i, j));
  const double n = static_cast<double>(count_);
  if (a == b) return std::max(0.0, squares_[a] / n - mean(i) * mean(i));
  return products_.empty() ? 0 : products_[a * sums_.size() + b] / n - mean(i) * mean(j);
}

RoundedWeights RoundForInputs(absl::Span<const float> weights, int64_t channels, const InputMoments& moments,
                              const CodeGrid& grid, RoundingMethod method) {
  const auto width = static_cast<size_t>(moments.width()), columns = static_cast<size_t>(channels);
  const size_t block = grid.block > 0 ? static_cast<size_t>(grid.block) : width;
  RoundedWeights result;
  double mean_variance = 0;
  std::vector<double> importance(width);
  for (size_t k = 0; k < width; ++k) {
    importance[k] = moments.covariance(static_cast<int64_t>(k), static_cast<int64_t>(k));
    mean_variance += importance[k] / static_cast<double>(width);
  }
  // Fewer samples than inputs say less.
  const double shortage = static_cast<double>(width) / static_cast<double>(std::max<int64_t>(1, moments.count()));
  double damping = kDamping * (1 + shortage) * mean_variance;
  if (!(damping > 0)) damping = 1;
  for (double& each : importance) each += damping;
  result.scales = ChooseScales(weights, columns, importance, block, grid);
  result.codes.resize(weights.size());
  for (size_t k = 0; k < width; ++k) {
    for (size_t c = 0; c < columns; ++c) {
      result.codes[k * columns + c] =
          static_cast<int8_t>(CodeOf(weights[k * columns + c], result.scales[k / block * columns + c],
                                     static_cast<float>(grid.lowest), static_cast<float>(grid.highest)));
    }
  }
  if (method != RoundingMethod::kNearest && moments.has_products() && moments.count() >= kLeastSamples &&
      mean_variance > 0) {
    const std::vector<float> covariance = CovarianceOf(moments, damping);
    if (method != RoundingMethod::kAdaRound && moments.width() <= kMostFactorizedWidth) {
      const std::vector<float> compensation = CompensationOf(covariance, width);
      if (!compensation.empty()) RoundInOrder(weights, columns, compensation, block, grid, &result);
    }
    if (method != RoundingMethod::kGptq) {
      Descend(weights, columns, covariance, block, grid, method == RoundingMethod::kAdaRound, &result);
    }
  }
  result.corrections.resize(columns);
  for (size_t c = 0; c < columns; ++c) {
    double sum = 0;
    for (size_t k = 0; k < width; ++k) {
      const double rounded =
          static_cast<double>(result.codes[k * columns + c]) * result.scales[k / block * columns + c];
      sum += (weights[k * columns + c] - rounded) * moments.mean(static_cast<int64_t>(k));
    }
    result.corrections[c] = static_cast<float>(sum);
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
  std::vector<InputMoments> moments;  // One, or one for each input channel.
  std::string text;
};

// Adds samples of the input `x` to the moments.
void AddSamples(const Tensor& x, Job* job) {
  const Shape& shape = x.shape();
  const UnalignedSpan<float> unaligned = x.elements<float>();
  std::vector<float> sample(static_cast<size_t>(job->width));
  if (shape.rank() != 4 || job->op->core->op() == ops::kMatMul || job->op->core->op() == ops::kBatchMatMulV2) {
    const int64_t rows = x.num_elements() / job->width;
    const int64_t count = std::min(rows, job->samples_per_set);
    for (int64_t s = 0; s < count; ++s) {
      const int64_t row = s * rows / count;
      for (int64_t k = 0; k < job->width; ++k) {
        sample[static_cast<size_t>(k)] = unaligned[static_cast<size_t>(row * job->width + k)];
      }
      job->moments[0].Add(sample.data());
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
  std::vector<float> window(static_cast<size_t>(taps * depth));
  for (int64_t s = 0; s < count; ++s) {
    const int64_t place = s * places / count;
    const int64_t image = place / (out_h * out_w), y = place / out_w % out_h, z = place % out_w;
    for (int64_t i = 0; i < w.kernel_h; ++i) {
      for (int64_t j = 0; j < w.kernel_w; ++j) {
        const int64_t row = y * w.stride_h - top + i * w.dilation_h, column = z * w.stride_w - left + j * w.dilation_w;
        float* const to = &window[static_cast<size_t>((i * w.kernel_w + j) * depth)];
        if (row < 0 || row >= height || column < 0 || column >= width) {
          std::fill(to, to + depth, 0.f);
          continue;
        }
        const auto from = static_cast<size_t>(((image * height + row) * width + column) * depth);
        for (int64_t d = 0; d < depth; ++d) to[d] = unaligned[from + static_cast<size_t>(d)];
      }
    }
    if (!job->is_depthwise) {
      job->moments[0].Add(window.data());
      continue;
    }
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t t = 0; t < taps; ++t) sample[static_cast<size_t>(t)] = window[static_cast<size_t>(t * depth + d)];
      job->moments[static_cast<size_t>(d)].Add(sample.data());
    }
  }
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
      const RoundedWeights rounded = RoundForInputs(part, job->channels, job->moments[d], grid, method);
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
    RoundedWeights rounded = RoundForInputs(matrix, job->channels, job->moments[0], grid, method);
    result.codes.resize(elements.size());
    for (size_t k = 0; k < width; ++k) {
      for (size_t c = 0; c < channels; ++c) result.codes[index(k, c)] = rounded.codes[k * channels + c];
    }
    result.scales = std::move(rounded.scales);
    result.corrections = std::move(rounded.corrections);
  }
  job->moments.clear();
  return result;
}

// Returns the operator as a job, or Unimplemented.
absl::StatusOr<Job> JobOf(const QuantizableOperator& op, const ShapeMap& shapes, size_t num_sets) {
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
  const bool has_products = job.width <= kMostWidth && places >= kLeastSamples;
  const int64_t samples = std::clamp(4 * job.width, kFewSamples, kMostSamples);
  job.samples_per_set = std::max<int64_t>(1, samples / static_cast<int64_t>(std::max<size_t>(1, num_sets)));
  job.moments.assign(num_moments, InputMoments(job.width, has_products));
  return job;
}

// Makes jobs of the operators for which `wants` is true, collects their moments, and calls `finish` for each, in order
// for the jobs that are finished together and by several threads. As many are finished together as fit into kMostBytes.
// Returns their texts.
absl::StatusOr<std::string> FinishJobs(const Graph& graph, absl::Span<const InputSet> inputs,
                                       const SessionOptions& options, int num_threads,
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
      absl::StatusOr<Job> job = JobOf(op, shapes, inputs.size());
      if (!job.ok()) continue;
      const Shape input = shapes.Of(op.Operand(0));
      int64_t elements = 1;
      for (int i = 0; input.has_rank() && i < input.rank(); ++i) elements *= std::max<int64_t>(1, input.dim(i));
      bytes += elements * static_cast<int64_t>(sizeof(float));
      if (job->moments[0].has_products()) {
        bytes +=
            static_cast<int64_t>(job->moments.size()) * job->width * job->width * static_cast<int64_t>(sizeof(float));
      }
      fetches.push_back(op.Operand(0).ToString());
      jobs.push_back(*std::move(job));
    }
    if (jobs.empty()) break;
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
    for (const InputSet& set : inputs) {
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session->Run(set));
      team.ForEach(jobs.size(), [&](size_t i) {
        if (values[i].num_elements() > 0) AddSamples(values[i], &jobs[i]);
      });
    }
    team.ForEach(jobs.size(), [&](size_t i) {
      for (InputMoments& moments : jobs[i].moments) moments.Finish();
      if (jobs[i].moments[0].count() > 0) finish(&jobs[i]);
    });
    for (const Job& job : jobs) text += job.text;
  }
  return text;
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

}  // namespace

absl::StatusOr<std::string> RoundedWeightsText(const Graph& graph, absl::Span<const InputSet> inputs,
                                               const SessionOptions& options, const WeightRoundingSettings& settings) {
  constexpr int kInt8Steps = 127, kInt4Steps = 7;
  return FinishJobs(
      graph, inputs, options, settings.num_threads, [](const QuantizableOperator&) { return true; },
      [&](Job* job) {
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
      });
}

absl::StatusOr<std::string> RoundedConstantsText(const Graph& graph, absl::Span<const InputSet> inputs,
                                                 const SessionOptions& options,
                                                 const ConstantRoundingSettings& settings) {
  const auto constant_of = [](const QuantizableOperator& op) { return OwnConstant(op.core->input(op.weights)); };
  return FinishJobs(
      graph, inputs, options, settings.num_threads,
      [&](const QuantizableOperator& op) { return constant_of(op) != nullptr; },
      [&](Job* job) {
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
      });
}

}  // namespace permafrost

// Rounds weights to codes so that the results of their operators change least on given inputs.
//
// Rounding to the nearest code minimises the change of the weights; what counts is the change of the products with the
// inputs, which are correlated and seldom have the mean 0. The sum of squared changes of a product is a quadratic form
// of the rounding errors with the covariance of the inputs, so that samples are needed only once. Biases compensate for
// the mean change (bias correction, Nagel et al. 2019, arXiv:1906.04721, with measured means of inputs).
#ifndef PERMAFROST_TOOLS_TRANSFORM_WEIGHT_ROUNDING_H_
#define PERMAFROST_TOOLS_TRANSFORM_WEIGHT_ROUNDING_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/session_options.h"
#include "tools/model/model_inputs.h"
#include "transforms/rewrites/rounded_constants.h"

namespace permafrost {

// The sums over samples of the inputs of a product: `width` inputs each. Products of several samples are added at once,
// because the matrix is larger than the caches. Not thread-safe.
class InputMoments {
 public:
  // With `has_products` false, only means and variances are kept. With `has_shifts`, what the inputs lack of those of
  // the original model is kept as well: its mean and, with products, its covariance with the inputs.
  explicit InputMoments(int64_t width, bool has_products, bool has_shifts = false);
  // `original`: the same inputs in the original model; null without shifts. Samples that are not finite are skipped.
  void Add(const float* sample, const float* original = nullptr);
  int64_t width() const { return static_cast<int64_t>(sums_.size()); }
  int64_t count() const { return count_; }
  bool has_products() const { return !products_.empty(); }
  double mean(int64_t i) const { return count_ == 0 ? 0 : sums_[static_cast<size_t>(i)] / static_cast<double>(count_); }
  // REQUIRES: Finish was called after the last sample.
  double covariance(int64_t i, int64_t j) const;
  bool has_shifts() const { return !shift_sums_.empty(); }
  // The mean of what input i lacks; 0 without shifts.
  double mean_shift(int64_t i) const {
    return count_ == 0 || shift_sums_.empty() ? 0 : shift_sums_[static_cast<size_t>(i)] / static_cast<double>(count_);
  }
  // False also for widths above 1024.
  bool has_shift_products() const { return !shift_products_.empty(); }
  // The covariance of input i with what input j lacks. REQUIRES: has_shift_products(), and Finish was called.
  double shift_covariance(int64_t i, int64_t j) const;
  // Adds the products of the samples that are waiting.
  void Finish();
  // Adds all samples of `other`, whose settings are the same. REQUIRES: Finish was called for both.
  void Merge(const InputMoments& other);

 private:
  int64_t count_ = 0;
  std::vector<double> sums_, squares_;
  std::vector<float> products_;  // Of the upper triangle, in rows of `width`; empty if not kept.
  std::vector<double> shift_sums_;
  std::vector<float> shift_products_;            // In full rows.
  std::vector<float> waiting_, waiting_shifts_;  // Samples whose products are not added yet, one after the other.
};

// The numbers that codes can represent: code * scale.
struct CodeGrid {
  int lowest = -127, highest = 127;
  int64_t block = 0;  // This many inputs have one scale, a divisor of the width; 0: all.
  // If positive, scales are bfloat16 numbers times this unit.
  double coarse_unit = 0;
};

// Codes of the weights of `channels` results: code [k][c] for input k.
struct RoundedWeights {
  std::vector<int8_t> codes;
  std::vector<float> scales;       // [block][channel].
  std::vector<float> corrections;  // To be added to the bias of each channel.
};

// Rounds `weights`, [width][channels]. Methods that need covariances round to the nearest code if there are too few
// samples. Deterministic; the work is limited by the sizes alone, at most about 10 * width^2 * channels
// multiplications.
RoundedWeights RoundForInputs(absl::Span<const float> weights, int64_t channels, const InputMoments& moments,
                              const CodeGrid& grid, RoundingMethod method);
// The same for inputs with shifts, for which the weights and corrections make up: as far as this helps each of the two
// halves of the samples if it is learnt from the other one.
RoundedWeights RoundForShiftedInputs(absl::Span<const float> weights, int64_t channels,
                                     std::array<InputMoments, 2> halves, const CodeGrid& grid, RoundingMethod method);

struct WeightRoundingSettings {
  std::string mode = "int8";  // As of quantize_for_tflite.
  RoundingMethod method = RoundingMethod::kDescent;
  bool corrects_biases = true;
  int num_threads = 1;
};

// Runs `graph` on the inputs, and returns the lines of a calibration file of quantize_for_tflite with the codes, scales
// and corrections for its operators with weights. Operators whose inputs are not known well enough have no lines.
// Covariances are held for as many operators at a time as fit into 512 MiB. Errors are those of Session.
absl::StatusOr<std::string> RoundedWeightsText(const Graph& graph, absl::Span<const InputSet> inputs,
                                               const SessionOptions& options, const WeightRoundingSettings& settings);

// Returns such lines, chosen for one level of operators after the other, with the inputs that they have in the
// quantised model so far: weights make up for the errors of the operators before, as far as these depend on the inputs
// of the operator, and biases for the rest of their mean. `quantize` makes the quantised graph from the lines so far;
// its tensors have the names of those of `graph`. Runs both graphs once for each level of operators.
absl::StatusOr<std::string> WeightsRoundedInSequence(
    const Graph& graph, absl::Span<const InputSet> inputs, const SessionOptions& options,
    const WeightRoundingSettings& settings,
    const std::function<absl::StatusOr<std::unique_ptr<Graph>>(const std::string& text)>& quantize);

// Rounds constants for the pass quantize_weights.
struct ConstantRoundingSettings {
  int bits = 8;       // 4 or 8.
  int64_t block = 0;  // As of the pass.
  RoundingMethod method = RoundingMethod::kDescent;
  int num_threads = 1;
};

// Returns lines of a calibration file (transforms/rewrites/rounded_constants.h) for the constants of `graph` that one
// operator reads as its weights. The limits and errors are those of RoundedWeightsText.
absl::StatusOr<std::string> RoundedConstantsText(const Graph& graph, absl::Span<const InputSet> inputs,
                                                 const SessionOptions& options,
                                                 const ConstantRoundingSettings& settings);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_WEIGHT_ROUNDING_H_

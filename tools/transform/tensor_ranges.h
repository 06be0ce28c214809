// Finds the ranges of a model's activations on given inputs, for quantisation.
#ifndef PERMAFROST_TOOLS_TRANSFORM_TENSOR_RANGES_H_
#define PERMAFROST_TOOLS_TRANSFORM_TENSOR_RANGES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/precision/value_range.h"
#include "runtime_check/session_options.h"
#include "tools/model/model_inputs.h"

namespace permafrost {

// The distribution of the finite values of one tensor. Zeros are not counted in it, because every range represents them
// exactly. Memory: about 32 KB. Not thread-safe.
class ValueDistribution {
 public:
  void Add(const Tensor& values);
  // Returns the least and the largest value, with 0; {0, 0} without values.
  std::pair<double, double> MinMax() const { return {low_, high_}; }
  // Returns the range around 0 by a method, for codes with `steps` steps, in which values outside are clamped. Within
  // MinMax(). Percentiles are those of magnitudes.
  std::pair<double, double> Range(RangeMethod method, int steps) const;

 private:
  static constexpr int kBins = 4096;  // An even number.

  void Widen(double most);
  std::pair<double, double> LeastSquaredError(int steps) const;
  std::pair<double, double> LeastDivergence(int steps) const;
  std::pair<double, double> Percentile(double part) const;

  double low_ = 0, high_ = 0;
  double most_ = 0;  // Bins cover [-most_, most_].
  std::array<int64_t, kBins> bins_ = {};
};

struct TensorRange {
  std::string tensor;                                       // "conv" or "split:1".
  std::map<RangeMethod, std::pair<double, double>> ranges;  // By all methods.
};

// Runs `graph`, whose interface must be declared, on each input set, and returns the ranges of the activations that
// quantize_for_tflite asks for, in the order of the nodes. Tensors are fetched together up to 512 MiB. Errors are those
// of Session.
absl::StatusOr<std::vector<TensorRange>> FindTensorRanges(const Graph& graph, absl::Span<const InputSet> inputs,
                                                          const SessionOptions& options);

// Returns the lines "TENSOR LOW HIGH" that quantize_for_tflite reads.
std::string RangesText(absl::Span<const TensorRange> ranges, RangeMethod method);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_TENSOR_RANGES_H_

// The error of outputs against expected ones, over all samples together.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_ERROR_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_ERROR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/tensor.h"

namespace permafrost {

// Limits on the error against the reference kernels, for each output over all samples together. The root mean square of
// the differences must be within one of the two bounds. In an output that holds class probabilities (rows of two or
// more numbers from 0 to 1 that add up to 1), the largest element of each row must also be at the same position.
struct AccuracyBudget {
  double relative_rms = 0.03;  // Relative to the root mean square of the output.
  double absolute_rms = 1e-4;
};

// Accumulates the error of one output.
class OutputError {
 public:
  void Add(const Tensor& expected, const Tensor& actual);

  double rms() const;       // Returns the rms of the differences.
  double relative() const;  // Returns rms() over the output's rms; infinite if only the latter is 0.
  // Returns the rms of the differences divided by the larger of the two bounds. Infinite if not comparable.
  double ShareOf(const AccuracyBudget& budget) const;
  bool has_other_class() const { return num_other_classes_ > 0; }
  int64_t class_rows() const { return class_rows_; }  // Number of rows of class probabilities.
  int64_t num_other_classes() const {
    return num_other_classes_;
  }                                                      // Rows whose largest element is at another position.
  bool is_comparable() const { return is_comparable_; }  // Same type and shape; all but floats must be equal.

 private:
  double difference_ = 0, expected_ = 0;  // Sums of squares.
  int64_t count_ = 0, class_rows_ = 0, num_other_classes_ = 0;
  bool is_comparable_ = true;
};

// Outputs by sample, then by fetch.
using SampleOutputs = std::vector<std::vector<Tensor>>;

// Compares outputs. Returns the errors by fetch.
std::vector<OutputError> CompareOutputs(const SampleOutputs& expected, const SampleOutputs& actual);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_ERROR_H_

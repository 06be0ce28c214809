// How far outputs are from what they should be, over all samples together.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_ERROR_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_ERROR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/tensor.h"

namespace permafrost {

// Against the reference kernels, for each output and over all samples together: the root mean square of the differences
// must be within one of the two bounds. An output that holds probabilities of classes (rows of two or more numbers from
// 0 to 1 that add up to 1) must besides have its largest at the same place in each row.
struct AccuracyBudget {
  double relative_rms = 0.03;  // Of the root mean square of the output.
  double absolute_rms = 1e-4;
};

// What is known of one output.
class OutputError {
 public:
  void Add(const Tensor& expected, const Tensor& actual);

  double rms() const;       // Of the differences.
  double relative() const;  // The same, over that of the output; infinite where that is 0 and they are not.
  // The rms of the differences over the larger of what the two bounds allow. Infinite where it is not comparable.
  double ShareOf(const AccuracyBudget& budget) const;
  bool has_other_class() const { return has_other_class_; }
  bool is_comparable() const { return is_comparable_; }  // Of the same type and shape; all but floats must be equal.

 private:
  double difference_ = 0, expected_ = 0;  // Sums of squares.
  int64_t count_ = 0;
  bool has_other_class_ = false, is_comparable_ = true;
};

// Outputs by sample, then by fetch.
using SampleOutputs = std::vector<std::vector<Tensor>>;

// By fetch.
std::vector<OutputError> CompareOutputs(const SampleOutputs& expected, const SampleOutputs& actual);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_ERROR_H_

// How far two tensors are apart.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "graph/tensor.h"

namespace permafrost {

// With e the expected and a the actual elements, as double; the sums and maxima run over the pairs in which both are
// finite. The real and imaginary part of a complex number count as an element each. Strings have only the counts.
struct OutputDifference {
  enum class Kind {
    kComparable,
    kDTypeMismatch,
    kShapeMismatch,
  };
  Kind kind = Kind::kComparable;
  std::string mismatch;  // "found float [2,3], expected float [3,2]"; empty when comparable. Nothing below is set then.

  int64_t num_elements = 0;
  // Pairs that are not equal. NaN equals NaN; the zeros are equal.
  int64_t num_different = 0;
  // Pairs of which one is NaN or infinite and the other is not the same: they are different by any measure.
  int64_t num_nonfinite_mismatches = 0;

  double max_abs = 0;           // max |a - e|
  double mean_abs = 0;          // mean |a - e|
  double max_rel = 0;           // max |a - e| / |e| where |e| >= 1e-6 max |e|, which leaves out noise about zero
  double max_abs_expected = 0;  // max |e|
  double sqnr_db = 0;           // 10 log10(sum e^2 / sum (a - e)^2); infinite without noise
  double cosine = 1;            // sum a e / sqrt(sum a^2 sum e^2); 1 when both are all zero, 0 when one is

  // Of the rows along the last axis, the share in which the largest element is at the same place (the first of equals),
  // and in which the place of the largest expected element is among those of the 5 largest actual ones. Not set for
  // scalars, empty tensors, strings, bool and complex, and where the last axis has fewer than 2, or for top5 fewer than
  // 6, elements.
  std::optional<double> top1_agreement;
  std::optional<double> top5_agreement;

  bool is_identical() const { return kind == Kind::kComparable && num_different == 0; }
  // max |a - e| / max(1, max |e|); infinite when not comparable, with non-finite mismatches, and for unequal strings.
  double relative() const;
  bool IsWithin(double tolerance) const { return relative() <= tolerance; }
  // One line for a person.
  std::string ToString() const;

  bool has_numbers = true;  // False for strings.

  // What the means, ratios and shares above are made of, so that they can be made of more.
  int64_t num_finite = 0;  // Pairs of finite elements.
  double sum_error = 0, sum_error_squared = 0;
  double sum_ee = 0, sum_aa = 0, sum_ae = 0;
  int64_t num_rows = 0;  // Of those that the shares are of.

  // Makes this the difference of both together: of what was compared so far and of more of the same tensors. Where
  // either is not comparable, so is the result, with the first mismatch. `max_rel` becomes the larger of the two.
  void Merge(const OutputDifference& more);
};

OutputDifference CompareTensors(const Tensor& expected, const Tensor& actual);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_

// How far two tensors are apart.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "graph/tensor.h"

namespace permafrost {

// The smallest scale that an output is judged by, so that noise about a constant zero is not infinitely large. It is
// eight times the rounding of a float32 number of magnitude one (2^-23, about 1.2e-7).
inline constexpr double kScaleFloor = 1e-6;

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
  // The difference relative to the output's own scale: the larger of max |a - e| / max |e| and rms(a - e) / rms(e),
  // with `scale_floor` for smaller denominators. The second notices an error that is spread over an output with few
  // large elements. Infinite when not comparable, with non-finite mismatches, and for unequal strings.
  double relative() const;
  bool IsWithin(double tolerance) const { return relative() <= tolerance; }
  // One line for a person.
  std::string ToString() const;

  bool has_numbers = true;        // False for strings.
  bool has_exact_values = false;  // Integers of 32 and 64 bits, bool and strings: elements are equal or they are not.
  double scale_floor = kScaleFloor;

  // What the means, ratios and shares above are made of, so that they can be made of more.
  int64_t num_finite = 0;  // Pairs of finite elements.
  double sum_error = 0, sum_error_squared = 0;
  double sum_ee = 0, sum_aa = 0, sum_ae = 0;
  int64_t num_rows = 0;  // Of those that the shares are of.

  // Makes this the difference of both together: of what was compared so far and of more of the same tensors. Where
  // either is not comparable, so is the result, with the first mismatch. `max_rel` and `scale_floor` become the larger
  // of the two.
  void Merge(const OutputDifference& more);
};

OutputDifference CompareTensors(const Tensor& expected, const Tensor& actual);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_

// Measures the difference between two tensors.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "graph/tensor.h"

namespace permafrost {

// The minimum scale that an output is judged by, so that noise around a constant zero has a finite relative error. It
// is eight times the rounding of a float32 number of magnitude one (2^-23, about 1.2e-7).
inline constexpr double kScaleFloor = 1e-6;

// The difference between two tensors. With e the expected and a the actual elements, as double; the sums and maxima are
// over the pairs in which both are finite. The real and imaginary parts of a complex number count as one element each.
// Strings have only the counts.
struct OutputDifference {
  enum class Kind {
    kComparable,
    kDTypeMismatch,
    kShapeMismatch,
  };
  Kind kind = Kind::kComparable;
  std::string mismatch;  // "found float [2,3], expected float [3,2]"; empty if comparable. If set, nothing below is.

  int64_t num_elements = 0;
  // Pairs that are not equal. NaN equals NaN; zeros of different sign are equal.
  int64_t num_different = 0;
  // Pairs in which one element is NaN or infinite and the other one is not the same.
  int64_t num_nonfinite_mismatches = 0;

  double max_abs = 0;           // max |a - e|
  double mean_abs = 0;          // mean |a - e|
  double max_rel = 0;           // max |a - e| / |e| where |e| >= 1e-6 max |e|, which excludes noise around zero
  double max_abs_expected = 0;  // max |e|
  double sqnr_db = 0;           // 10 log10(sum e^2 / sum (a - e)^2); infinite without noise
  double cosine = 1;            // sum a e / sqrt(sum a^2 sum e^2); 1 if both are all zero, 0 if one is

  // The share of the rows along the last axis in which the largest element is at the same position (the first of
  // equals), and the share in which the position of the largest expected element is among those of the 5 largest actual
  // ones. Not set for scalars, empty tensors, strings, bool and complex, and if the last axis has fewer than 2, or for
  // top5 fewer than 6, elements.
  std::optional<double> top1_agreement;
  std::optional<double> top5_agreement;

  bool is_identical() const { return kind == Kind::kComparable && num_different == 0; }
  // Returns the difference relative to the output's own scale: the larger of max |a - e| / max |e| and rms(a - e) /
  // rms(e), with `scale_floor` for smaller denominators. The second term detects an error that is spread over an output
  // with few large elements. Infinite if not comparable, with non-finite mismatches, and for unequal strings.
  double relative() const;
  bool IsWithin(double tolerance) const { return relative() <= tolerance; }
  // Returns a readable summary in one line.
  std::string ToString() const;

  bool has_numbers = true;        // False for strings.
  bool has_exact_values = false;  // Integers of 32 and 64 bits, bool and strings, which are compared for equality.
  double scale_floor = kScaleFloor;

  // The sums behind the means, ratios and shares above, which Merge combines.
  int64_t num_finite = 0;  // Pairs of finite elements.
  double sum_error = 0, sum_error_squared = 0;
  double sum_ee = 0, sum_aa = 0, sum_ae = 0;
  int64_t num_rows = 0;  // Number of rows that the shares refer to.

  // Adds the difference of further tensors, so that the result is that of both together. If either is not comparable,
  // neither is the result, and it has the first mismatch. `max_rel` and `scale_floor` become the larger of the two.
  void Merge(const OutputDifference& more);
};

OutputDifference CompareTensors(const Tensor& expected, const Tensor& actual);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_COMPARE_H_

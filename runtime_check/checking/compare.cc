// Compares in one pass over the pairs of elements and one over the rows.
#include "runtime_check/checking/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace permafrost {
namespace {

template <typename T>
double ToDouble(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return ToFloat(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(value.value);  // The code of a quantised type.
  }
}

// Returns whether the elements are equal. 64-bit integers can differ even if their doubles are equal.
template <typename T>
bool AreEqual(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const double x = ToDouble(a), y = ToDouble(b);
    return x == y || (std::isnan(x) && std::isnan(y));
  }
}

class Comparison {
 public:
  explicit Comparison(OutputDifference* difference) : difference_(*difference) {}

  template <typename T>
  void FindLargest(UnalignedSpan<T> expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const double e = std::abs(ToDouble(expected[i]));
      if (std::isfinite(e)) difference_.max_abs_expected = std::max(difference_.max_abs_expected, e);
    }
  }

  template <typename T>
  void Add(UnalignedSpan<T> expected, UnalignedSpan<T> actual) {
    constexpr double kNoise = 1e-6;  // See max_rel.
    const double floor = kNoise * difference_.max_abs_expected;
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool equal = AreEqual(expected[i], actual[i]);
      const double e = ToDouble(expected[i]), a = ToDouble(actual[i]);
      if (!equal) ++difference_.num_different;
      if (!std::isfinite(e) || !std::isfinite(a)) {
        if (!equal) ++difference_.num_nonfinite_mismatches;
        continue;
      }
      const double error = std::abs(a - e);
      difference_.max_abs = std::max(difference_.max_abs, error);
      if (std::abs(e) >= floor && e != 0) difference_.max_rel = std::max(difference_.max_rel, error / std::abs(e));
      difference_.sum_error += error;
      difference_.sum_error_squared += error * error;
      difference_.sum_ee += e * e;
      difference_.sum_aa += a * a;
      difference_.sum_ae += a * e;
      ++difference_.num_finite;
    }
  }

 private:
  OutputDifference& difference_;
};

// Computes the results from the sums.
void Summarize(OutputDifference* d) {
  if (d->num_finite > 0) d->mean_abs = d->sum_error / static_cast<double>(d->num_finite);
  d->sqnr_db = d->sum_error_squared == 0 ? std::numeric_limits<double>::infinity()
                                         : 10 * std::log10(d->sum_ee / d->sum_error_squared);
  if (d->sum_ee == 0 || d->sum_aa == 0) {
    d->cosine = d->sum_ee == d->sum_aa ? 1 : 0;
  } else {
    d->cosine = d->sum_ae / (std::sqrt(d->sum_ee) * std::sqrt(d->sum_aa));
  }
}

// Returns the position of the largest element; NaN is ignored.
template <typename T>
size_t Largest(UnalignedSpan<T> row) {
  size_t best = 0;
  for (size_t i = 1; i < row.size(); ++i) {
    const double best_value = ToDouble(row[best]);
    if (ToDouble(row[i]) > best_value || (std::isnan(best_value) && !std::isnan(ToDouble(row[i])))) best = i;
  }
  return best;
}

// Returns the number of elements that precede the one at `place` in descending order; equal elements keep their order.
template <typename T>
size_t RankOf(UnalignedSpan<T> row, size_t place) {
  const double value = ToDouble(row[place]);
  size_t rank = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double other = ToDouble(row[i]);
    if (other > value || (other == value && i < place) || (std::isnan(value) && !std::isnan(other))) ++rank;
  }
  return rank;
}

template <typename T>
void CompareRows(const Tensor& expected, const Tensor& actual, OutputDifference* difference) {
  constexpr size_t kTop = 5;
  const Shape& shape = expected.shape();
  if (shape.rank() == 0 || expected.num_elements() == 0) return;
  const auto length = static_cast<size_t>(shape.dim(shape.rank() - 1));
  if (length < 2) return;
  const size_t rows = static_cast<size_t>(expected.num_elements()) / length;
  size_t top1 = 0, top5 = 0;
  for (size_t i = 0; i < rows; ++i) {
    const UnalignedSpan<T> expected_row(expected.bytes().data() + i * length * sizeof(T), length);
    const UnalignedSpan<T> actual_row(actual.bytes().data() + i * length * sizeof(T), length);
    const size_t rank = RankOf(actual_row, Largest(expected_row));
    top1 += rank == 0 ? 1 : 0;
    top5 += rank < kTop ? 1 : 0;
  }
  difference->num_rows = static_cast<int64_t>(rows);
  difference->top1_agreement = static_cast<double>(top1) / static_cast<double>(rows);
  if (length > kTop) difference->top5_agreement = static_cast<double>(top5) / static_cast<double>(rows);
}

template <typename T, typename Element = T>
void Compare(const Tensor& expected, const Tensor& actual, OutputDifference* difference) {
  Comparison comparison(difference);
  comparison.FindLargest(expected.elements<Element>());
  comparison.Add(expected.elements<Element>(), actual.elements<Element>());
  Summarize(difference);
  if constexpr (std::is_same_v<T, Element> && !std::is_same_v<T, bool>) CompareRows<T>(expected, actual, difference);
}

std::string Describe(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype()), " ", tensor.shape().ToString());
}

}  // namespace

double OutputDifference::relative() const {
  if (kind != Kind::kComparable || num_nonfinite_mismatches > 0 || (!has_numbers && num_different > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  const double largest = max_abs / std::max(scale_floor, max_abs_expected);
  if (num_finite == 0) return largest;
  const auto count = static_cast<double>(num_finite);
  return std::max(largest, std::sqrt(sum_error_squared / count) / std::max(scale_floor, std::sqrt(sum_ee / count)));
}

void OutputDifference::Merge(const OutputDifference& more) {
  if (kind != Kind::kComparable) return;
  if (more.kind != Kind::kComparable || num_elements == 0) {
    *this = more;
    return;
  }
  num_elements += more.num_elements;
  num_different += more.num_different;
  num_nonfinite_mismatches += more.num_nonfinite_mismatches;
  max_abs = std::max(max_abs, more.max_abs);
  max_rel = std::max(max_rel, more.max_rel);
  max_abs_expected = std::max(max_abs_expected, more.max_abs_expected);
  scale_floor = std::max(scale_floor, more.scale_floor);
  num_finite += more.num_finite;
  sum_error += more.sum_error;
  sum_error_squared += more.sum_error_squared;
  sum_ee += more.sum_ee;
  sum_aa += more.sum_aa;
  sum_ae += more.sum_ae;
  const auto own = static_cast<double>(num_rows), others = static_cast<double>(more.num_rows);
  const auto merge_shares = [&](std::optional<double>* share, const std::optional<double>& other) {
    if (share->has_value() && other.has_value()) *share = (**share * own + *other * others) / (own + others);
  };
  merge_shares(&top1_agreement, more.top1_agreement);
  merge_shares(&top5_agreement, more.top5_agreement);
  num_rows += more.num_rows;
  if (has_numbers) Summarize(this);
}

std::string OutputDifference::ToString() const {
  if (kind != Kind::kComparable) return mismatch;
  if (num_different == 0) return absl::StrCat("identical (", num_elements, " elements)");
  std::string text = absl::StrCat(num_different, " of ", num_elements, " elements differ");
  if (!has_numbers) return text;
  absl::StrAppendFormat(&text, ", max abs %.3g, mean abs %.3g, max rel %.3g, sqnr %.1f dB, cosine %.6f", max_abs,
                        mean_abs, max_rel, sqnr_db, cosine);
  if (top1_agreement.has_value()) absl::StrAppendFormat(&text, ", top-1 %.1f%%", *top1_agreement * 100);
  if (top5_agreement.has_value()) absl::StrAppendFormat(&text, ", top-5 %.1f%%", *top5_agreement * 100);
  if (num_nonfinite_mismatches > 0) absl::StrAppend(&text, ", ", num_nonfinite_mismatches, " non-finite mismatches");
  return text;
}

OutputDifference CompareTensors(const Tensor& expected, const Tensor& actual) {
  OutputDifference difference;
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape()) {
    difference.kind = expected.dtype() != actual.dtype() ? OutputDifference::Kind::kDTypeMismatch
                                                         : OutputDifference::Kind::kShapeMismatch;
    difference.mismatch = absl::StrCat("found ", Describe(actual), ", expected ", Describe(expected));
    return difference;
  }
  difference.num_elements = expected.num_elements();
  for (const DType exact :
       {DType::kInt32, DType::kUint32, DType::kInt64, DType::kUint64, DType::kBool, DType::kString}) {
    difference.has_exact_values |= expected.dtype() == exact;
  }
  if (expected.dtype() == DType::kString) {
    difference.has_numbers = false;
    for (size_t i = 0; i < expected.strings().size(); ++i) {
      if (expected.strings()[i] != actual.strings()[i]) ++difference.num_different;
    }
    return difference;
  }
  const bool known = DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
                                int64_t, uint64_t, bool, QInt8, QUint8, QInt16, QUint16, QInt32>(
      expected.dtype(), [&](auto tag) { Compare<typename decltype(tag)::type>(expected, actual, &difference); });
  if (known) return difference;
  if (expected.dtype() == DType::kComplex64) {
    Compare<std::complex<float>, float>(expected, actual, &difference);
    difference.num_elements *= 2;
  } else if (expected.dtype() == DType::kComplex128) {
    Compare<std::complex<double>, double>(expected, actual, &difference);
    difference.num_elements *= 2;
  }
  return difference;
}

}  // namespace permafrost

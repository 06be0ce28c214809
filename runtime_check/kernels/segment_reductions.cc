// SegmentMax, SegmentMin, SegmentMean, SegmentProd, their unsorted versions, and SparseSegmentSum, SparseSegmentMean
// and SparseSegmentSqrtN: rows with the same number, reduced to one row.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/segment_rows.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// --- Reductions ------------------------------------------------------------------------------------------------------

// Each has the value of a segment without rows, `Empty`, and of the same in sorted versions, `Gap`.
struct Larger {
  template <typename T>
  static T Empty() {
    if constexpr (std::is_same_v<T, Half>) return ToHalf(-65504.f);  // The lowest finite number.
    if constexpr (std::is_same_v<T, BFloat16>) return BFloat16{0xff7f};
    return std::numeric_limits<T>::lowest();
  }
  template <typename T>
  static T Gap() {
    return T{};
  }
  template <typename T>
  static T Of(T a, T b) {
    return Comparable(a) < Comparable(b) ? b : a;
  }
};
struct Smaller {
  template <typename T>
  static T Empty() {
    if constexpr (std::is_same_v<T, Half>) return ToHalf(65504.f);
    if constexpr (std::is_same_v<T, BFloat16>) return BFloat16{0x7f7f};
    return std::numeric_limits<T>::max();
  }
  template <typename T>
  static T Gap() {
    return T{};
  }
  template <typename T>
  static T Of(T a, T b) {
    return Comparable(b) < Comparable(a) ? b : a;
  }
};
struct Times {
  template <typename T>
  static T Empty() {
    return Narrow<T>(1);
  }
  template <typename T>
  static T Gap() {
    return Narrow<T>(1);
  }
  template <typename T>
  static T Of(T a, T b) {
    return Narrow<T>(Widen(a) * Widen(b));
  }
};

// --- Sorted and unsorted segments ------------------------------------------------------------------------------------

// Returns the integers of input i.
std::vector<int64_t> IntegersOf(ComputeContext* context, int i) {
  std::vector<int64_t> result;
  DispatchOn<int16_t, int32_t, int64_t>(context->input_type(i), [&](auto tag) {
    const auto* values = context->input<typename decltype(tag)::type>(i);
    result.assign(values, values + context->input_shape(i).num_elements());
  });
  return result;
}

absl::StatusOr<int64_t> CountSorted(const std::vector<int64_t>& numbers) {
  return CountSortedSegments(numbers.data(), static_cast<int64_t>(numbers.size()));
}

// Reduces the rows of each number. Rows with negative numbers are ignored.
template <typename Op, typename T>
absl::Status ReduceRows(ComputeContext* context, const std::vector<int64_t>& numbers, bool sorted) {
  const Shape& shape = context->output_shape(0);
  const int64_t count = shape.dim(0), row_elements = ProductOfDims(shape, 1, shape.rank());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("'segment_ids' has ", numbers[i], " at element ", i, ", expected less than ", count));
    }
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  const T* data = context->input<T>(0);
  T* output = context->output<T>(0);
  std::fill_n(output, shape.num_elements(), sorted ? Op::template Gap<T>() : Op::template Empty<T>());
  std::vector<bool> has_rows(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size() && !RunIsCancelled(); ++i) {
    if (numbers[i] < 0) continue;
    const T* from = data + static_cast<int64_t>(i) * row_elements;
    T* to = output + numbers[i] * row_elements;
    if (has_rows[static_cast<size_t>(numbers[i])]) {
      for (int64_t e = 0; e < row_elements; ++e) to[e] = Op::Of(to[e], from[e]);
    } else {
      std::copy_n(from, row_elements, to);
    }
    has_rows[static_cast<size_t>(numbers[i])] = true;
  }
  return absl::OkStatus();
}

template <typename Op>
absl::Status ReduceSegments(ComputeContext* context, const std::vector<int64_t>& numbers, bool sorted) {
  absl::Status status;
  const auto reduce = [&](auto tag) {
    status = ReduceRows<Op, typename decltype(tag)::type>(context, numbers, sorted);
  };
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_type(0), reduce);
  if constexpr (std::is_same_v<Op, Times>) {
    DispatchOn<std::complex<float>, std::complex<double>>(context->input_type(0), reduce);
  }
  return status;
}

template <typename Op>
absl::Status ComputeUnsorted(ComputeContext* context) {
  return ReduceSegments<Op>(context, IntegersOf(context, 1), /*sorted=*/false);
}

template <typename Op>
absl::Status ComputeSorted(ComputeContext* context) {
  const std::vector<int64_t> numbers = IntegersOf(context, 1);
  PF_ASSIGN_OR_RETURN(const int64_t count, CountSorted(numbers));
  PF_RETURN_IF_ERROR(AllocateSegments(context, count));
  return ReduceSegments<Op>(context, numbers, /*sorted=*/true);
}

// --- Sums of segments, divided by a function of their length ---------------------------------------------------------

enum class Divisor { kOne, kCount, kRootOfCount };

// Adds row rows[i] of the data, or row i if there are no rows, to the output row numbers[i].
template <typename T>
void AddRows(ComputeContext* context, const std::vector<int64_t>& numbers, const std::vector<int64_t>* rows,
             Divisor divisor) {
  const Shape& shape = context->output_shape(0);
  if (shape.num_elements() == 0) return;
  const int64_t row_elements = ProductOfDims(shape, 1, shape.rank());
  const T* data = context->input<T>(0);
  T* output = context->output<T>(0);
  std::fill_n(output, shape.num_elements(), T());
  for (size_t begin = 0, end; begin < numbers.size() && !RunIsCancelled(); begin = end) {
    T* to = output + numbers[begin] * row_elements;
    for (end = begin; end < numbers.size() && numbers[end] == numbers[begin]; ++end) {
      const T* from = data + (rows != nullptr ? (*rows)[end] : static_cast<int64_t>(end)) * row_elements;
      for (int64_t e = 0; e < row_elements; ++e) to[e] = Narrow<T>(Widen(to[e]) + Widen(from[e]));
    }
    if (divisor == Divisor::kOne) continue;
    const auto count = static_cast<double>(end - begin);
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      for (int64_t e = 0; e < row_elements; ++e) {
        to[e] = static_cast<T>(static_cast<Wide>(to[e]) / static_cast<Wide>(end - begin));
      }
    } else {
      const auto by = static_cast<decltype(std::abs(T()))>(divisor == Divisor::kCount ? count : std::sqrt(count));
      for (int64_t e = 0; e < row_elements; ++e) to[e] /= by;
    }
  }
}

absl::Status ComputeMean(ComputeContext* context) {
  const std::vector<int64_t> numbers = IntegersOf(context, 1);
  PF_ASSIGN_OR_RETURN(const int64_t count, CountSorted(numbers));
  PF_RETURN_IF_ERROR(AllocateSegments(context, count));
  DispatchOn<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             std::complex<float>, std::complex<double>>(context->input_type(0), [&](auto tag) {
    AddRows<typename decltype(tag)::type>(context, numbers, nullptr, Divisor::kCount);
  });
  return absl::OkStatus();
}

absl::Status PrepareSparse(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 1));
  if (context->input_shape(0).rank() < 1) {
    return absl::InvalidArgumentError("'data' is a scalar, expected a rank of at least 1");
  }
  if (context->input_shape(1) != context->input_shape(2)) {
    return absl::InvalidArgumentError(absl::StrCat("found ", context->input_shape(1).dim(0), " indices and ",
                                                   context->input_shape(2).dim(0),
                                                   " segment ids, expected as many of both"));
  }
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

template <Divisor divisor>
absl::Status ComputeSparse(ComputeContext* context) {
  const std::vector<int64_t> rows = IntegersOf(context, 1), numbers = IntegersOf(context, 2);
  PF_ASSIGN_OR_RETURN(const int64_t count, CountSorted(numbers));
  const int64_t most = context->input_shape(0).dim(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= most) {
      return absl::InvalidArgumentError(
          absl::StrCat("'indices' has ", rows[i], " at element ", i, ", expected a value in [0, ", most, ")"));
    }
  }
  PF_RETURN_IF_ERROR(AllocateSegments(context, count));
  if constexpr (divisor == Divisor::kOne) {
    DispatchOn<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
        context->input_type(0),
        [&](auto tag) { AddRows<typename decltype(tag)::type>(context, numbers, &rows, divisor); });
  }
  DispatchOn<float, double>(context->input_type(0),
                            [&](auto tag) { AddRows<typename decltype(tag)::type>(context, numbers, &rows, divisor); });
  return absl::OkStatus();
}

template <typename Op>
Kernel Sorted(const char* formula, std::vector<DType> types) {
  return Kernel(formula)
      .TypeNumbers("T", std::move(types))
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(PrepareSortedSegments)
      .Compute(ComputeSorted<Op>);
}

template <typename Op>
Kernel Unsorted(const char* formula, std::vector<DType> types) {
  return Kernel(formula)
      .TypeNumbers("T", std::move(types))
      .Types<int16_t, int32_t, int64_t>("Tindices")
      .TypeNumbers("Tnumsegments", IndexTypes())
      .Prepare(PrepareUnsortedSegments)
      .Compute(ComputeUnsorted<Op>);
}

template <Divisor divisor>
Kernel Sparse(const char* formula, std::vector<DType> types) {
  return Kernel(formula)
      .TypeNumbers("T", std::move(types))
      .TypeNumbers("Tidx", IndexTypes())
      .TypeNumbers("Tsegmentids", IndexTypes())
      .Prepare(PrepareWidened<PrepareSparse>)
      .Compute(ComputeWidened<ComputeSparse<divisor>>);
}

}  // namespace

DEFINE_KERNEL(SegmentMax) {
  return Sorted<Larger>("output[i] = maximum of the rows of data with segment id i, 0 without rows; ids ascend",
                        NumberTypes());
}
DEFINE_KERNEL(SegmentMin) {
  return Sorted<Smaller>("output[i] = minimum of the rows of data with segment id i, 0 without rows; ids ascend",
                         NumberTypes());
}
DEFINE_KERNEL(SegmentProd) {
  return Sorted<Times>("output[i] = product of the rows of data with segment id i, 1 without rows; ids ascend",
                       NumberAndComplexTypes());
}
DEFINE_KERNEL(SegmentMean) {
  return Kernel("output[i] = mean of the rows of data with segment id i, 0 without rows; ids ascend")
      .TypeNumbers("T", NumberAndComplexTypes())
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(PrepareWidened<PrepareSortedSegments>)
      .Compute(ComputeWidened<ComputeMean>);
}
DEFINE_KERNEL(UnsortedSegmentMax) {
  return Unsorted<Larger>("output[i] = maximum of the rows of data with segment id i; the lowest number without rows",
                          NumberTypes());
}
DEFINE_KERNEL(UnsortedSegmentMin) {
  return Unsorted<Smaller>("output[i] = minimum of the rows of data with segment id i; the largest number without rows",
                           NumberTypes());
}
DEFINE_KERNEL(UnsortedSegmentProd) {
  return Unsorted<Times>("output[i] = product of the rows of data with segment id i; 1 without rows",
                         NumberAndComplexTypes());
}
DEFINE_KERNEL(SparseSegmentSum) {
  return Sparse<Divisor::kOne>("output[i] = sum of the rows data[indices[j]] for all j with segment id i; ids ascend",
                               NumberTypes());
}
DEFINE_KERNEL(SparseSegmentMean) {
  return Sparse<Divisor::kCount>(
      "output[i] = mean of the rows data[indices[j]] for all j with segment id i; ids ascend", FloatingTypes());
}
DEFINE_KERNEL(SparseSegmentSqrtN) {
  return Sparse<Divisor::kRootOfCount>(
      "output[i] = sum of the n rows data[indices[j]] for all j with segment id i, divided by sqrt(n); ids ascend",
      FloatingTypes());
}

}  // namespace permafrost

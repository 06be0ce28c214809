// Ops that find elements by order: LowerBound, UpperBound, InTopK, InTopKV2, NthElement; and UnravelIndex.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// --- LowerBound, UpperBound ------------------------------------------------------------------------------------------

absl::Status PrepareBound(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 2));
  const Shape &sorted = context->input_shape(0), &values = context->input_shape(1);
  if (sorted.dim(0) != values.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", sorted.dim(0), " sorted rows and ", values.dim(0), " rows of values"));
  }
  if (context->output_type(0) == DType::kInt32 && sorted.dim(1) >= INT32_MAX) {
    return absl::InvalidArgumentError("the indices exceed int32: use out_type int64");
  }
  context->SetOutputShape(0, values);
  return absl::OkStatus();
}

template <bool upper>
absl::Status ComputeBound(ComputeContext* context) {
  const int64_t size = context->input_shape(0).dim(1), columns = context->input_shape(1).dim(1);
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_type(0), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T *sorted = context->input<T>(0), *values = context->input<T>(1);
        const auto less = [](T a, T b) { return Comparable(a) < Comparable(b); };
        DispatchOn<int32_t, int64_t>(context->output_type(0), [&](auto index) {
          using Index = typename decltype(index)::type;
          Index* output = context->output<Index>(0);
          for (int64_t i = 0; i < context->output_shape(0).num_elements(); ++i) {
            if (i % 4096 == 0 && RunIsCancelled()) return;
            const T *row = sorted + i / columns * size, *end = row + size;
            const T* found =
                upper ? std::upper_bound(row, end, values[i], less) : std::lower_bound(row, end, values[i], less);
            output[i] = static_cast<Index>(found - row);
          }
        });
      });
  return absl::OkStatus();
}

// --- InTopK ----------------------------------------------------------------------------------------------------------

absl::Status PrepareInTopK(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  if (context->num_inputs() > 2) PF_RETURN_IF_ERROR(RequireRank(context, 2, 0));
  if (context->input_shape(0).dim(0) != context->input_shape(1).dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("found ", context->input_shape(0).dim(0), " predictions and ",
                                                   context->input_shape(1).dim(0), " targets, expected as many"));
  }
  context->SetOutputShape(0, context->input_shape(1));
  return absl::OkStatus();
}

// A target is among the k best if fewer than k predictions are larger. It is not if a compared number is not finite.
absl::Status ComputeInTopK(ComputeContext* context) {
  int64_t k = 0;
  if (context->num_inputs() == 2) {
    PF_ASSIGN_OR_RETURN(k, IntAttr(context->node(), "k"));
  }
  const int64_t rows = context->input_shape(0).dim(0), classes = context->input_shape(0).dim(1);
  const float* predictions = context->input<float>(0);
  bool* output = context->output<bool>(0);
  DispatchOn<int32_t, int64_t>(context->input_type(1), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* targets = context->input<T>(1);
    if (context->num_inputs() > 2) k = *context->input<T>(2);
    for (int64_t row = 0; row < rows && !RunIsCancelled(); ++row) {
      const float* scores = predictions + row * classes;
      output[row] = false;
      if (targets[row] < 0 || targets[row] >= classes || !std::isfinite(scores[targets[row]])) continue;
      const float target = scores[targets[row]];
      int64_t larger = 0;
      bool is_finite = true;
      for (int64_t c = 0; c < classes && is_finite && larger < k; ++c) {
        is_finite = std::isfinite(scores[c]);
        larger += scores[c] > target;
      }
      output[row] = is_finite && larger < k;
    }
  });
  return absl::OkStatus();
}

// --- NthElement ------------------------------------------------------------------------------------------------------

absl::Status PrepareNth(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  PF_ASSIGN_OR_RETURN(const int64_t n, IntegerInput(context, 1));
  const Shape& input = context->input_shape(0);
  if (input.rank() < 1 || n < 0 || n >= input.dim(input.rank() - 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'n' is ", n, ", expected an index into the last dimension of ", input.ToString()));
  }
  int64_t bytes;
  if (__builtin_mul_overflow(input.dim(input.rank() - 1), static_cast<int64_t>(SizeOf(context->input_type(0))),
                             &bytes)) {
    return absl::InvalidArgumentError("the last dimension of the input fits no memory");
  }
  context->RequestScratch(static_cast<size_t>(bytes));
  return SetCheckedShape(context, 0, Shape(input.dims().subspan(0, input.rank() - 1)));
}

// NaN counts as the largest, so that the order is one that sorting may use.
absl::Status ComputeNth(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool reverse, BoolAttr(context->node(), "reverse"));
  const Shape& shape = context->input_shape(0);
  const int64_t size = shape.dim(shape.rank() - 1), given = *context->input<int32_t>(1);
  if (given < 0 || given >= size) return absl::InvalidArgumentError("'n' is out of the last dimension");
  const int64_t n = reverse ? size - 1 - given : given;
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_type(0), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* input = context->input<T>(0);
        T *output = context->output<T>(0), *row = reinterpret_cast<T*>(context->scratch());
        for (int64_t i = 0; i < context->output_shape(0).num_elements() && !RunIsCancelled(); ++i) {
          std::copy_n(input + i * size, size, row);
          std::nth_element(row, row + n, row + size, [](T x, T y) {
            const auto a = Comparable(x), b = Comparable(y);
            return a < b || (b != b && a == a);
          });
          output[i] = row[n];
        }
      });
  return absl::OkStatus();
}

// --- UnravelIndex ----------------------------------------------------------------------------------------------------

absl::Status PrepareUnravel(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  const Shape& indices = context->input_shape(0);
  if (indices.rank() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the indices have the shape ", indices.ToString(), ", expected a scalar or a vector"));
  }
  Shape output = context->input_shape(1);
  if (indices.rank() == 1) output.AddDim(indices.dim(0));
  return SetCheckedShape(context, 0, output);
}

template <typename T>
absl::Status Unravel(ComputeContext* context) {
  const T* given = context->input<T>(1);
  const std::vector<int64_t> dims(given, given + context->input_shape(1).dim(0));
  int64_t size = 1;
  for (const int64_t dim : dims) {
    if (dim < 1 || __builtin_mul_overflow(size, dim, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the dimensions are [", absl::StrJoin(dims, ","), "], expected a size that int64 counts"));
    }
  }
  const T* indices = context->input<T>(0);
  T* output = context->output<T>(0);
  const int64_t count = context->input_shape(0).num_elements();
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = indices[i];
    if (at < 0 || at >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("the indices have ", at, " at element ", i, ", expected a value in [0, ", size, ")"));
    }
    for (auto d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
      output[d * count + i] = static_cast<T>(at % dims[static_cast<size_t>(d)]);
      at /= dims[static_cast<size_t>(d)];
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeUnravel(ComputeContext* context) {
  return context->input_type(0) == DType::kInt32 ? Unravel<int32_t>(context) : Unravel<int64_t>(context);
}

}  // namespace

DEFINE_KERNEL(LowerBound) {
  return Kernel("in each row, the index of the first sorted input that is not less than the value")
      .TypeNumbers("T", NumberTypes())
      .TypeNumbers("out_type", IndexTypes())
      .Prepare(PrepareBound)
      .Compute(ComputeBound<false>);
}
DEFINE_KERNEL(UpperBound) {
  return Kernel("in each row, the index of the first sorted input that is larger than the value")
      .TypeNumbers("T", NumberTypes())
      .TypeNumbers("out_type", IndexTypes())
      .Prepare(PrepareBound)
      .Compute(ComputeBound<true>);
}
DEFINE_KERNEL(InTopK) {
  return Kernel("whether fewer than k predictions of the row are larger than that of the target")
      .TypeNumbers("T", IndexTypes())
      .Prepare(PrepareInTopK)
      .Compute(ComputeInTopK);
}
DEFINE_KERNEL(InTopKV2) {
  return Kernel("whether fewer than k predictions of the row are larger than that of the target")
      .TypeNumbers("T", IndexTypes())
      .Prepare(PrepareInTopK)
      .Compute(ComputeInTopK);
}
DEFINE_KERNEL(NthElement) {
  return Kernel("the n-th smallest element along the last dimension, or the n-th largest with 'reverse'")
      .TypeNumbers("T", NumberTypes())
      .Prepare(PrepareNth)
      .Compute(ComputeNth);
}
DEFINE_KERNEL(UnravelIndex) {
  return Kernel("the position in a tensor of the given dimensions of each flat index")
      .TypeNumbers("Tidx", IndexTypes())
      .Prepare(PrepareUnravel)
      .Compute(ComputeUnravel);
}

}  // namespace permafrost

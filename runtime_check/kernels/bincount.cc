// Bincount, DenseBincount, RaggedBincount and SparseBincount: counts of each number, or sums of weights.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

absl::Status CheckSize(int64_t size) {
  if (size >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'size' is ", size, ", expected 0 or more"));
}

// Returns InvalidArgument unless input `weights` is empty or has one weight per value of input `values`.
absl::Status CheckWeights(PrepareContext* context, int values, int weights) {
  const Shape& shape = context->input_shape(weights);
  if (shape.num_elements() == 0 || shape == context->input_shape(values)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the weights have the shape ", shape.ToString(), ", expected ",
                                                 context->input_shape(values).ToString(), " or none"));
}

// Inputs: (values, size, weights).
absl::Status PrepareDense(PrepareContext* context) {
  const Shape& values = context->input_shape(0);
  const bool is_bincount = context->node().op() == ops::kBincount;
  if (!is_bincount && values.rank() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", values.ToString(), ", expected at most two dimensions"));
  }
  PF_RETURN_IF_ERROR(CheckWeights(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 0));
  PF_ASSIGN_OR_RETURN(const int64_t size, IntegerInput(context, 1));
  PF_RETURN_IF_ERROR(CheckSize(size));
  return SetCheckedShape(context, 0, values.rank() == 2 && !is_bincount ? Shape({values.dim(0), size}) : Shape({size}));
}

// Inputs: (splits, values, size, weights).
absl::Status PrepareRagged(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_RETURN_IF_ERROR(CheckWeights(context, 1, 3));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 0));
  if (context->input_shape(0).dim(0) == 0) return absl::InvalidArgumentError("the splits are empty, expected a 0");
  PF_ASSIGN_OR_RETURN(const int64_t size, IntegerInput(context, 2));
  PF_RETURN_IF_ERROR(CheckSize(size));
  return SetCheckedShape(context, 0, Shape({context->input_shape(0).dim(0) - 1, size}));
}

// Inputs: (indices, values, dense_shape, size, weights).
absl::Status PrepareSparse(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_RETURN_IF_ERROR(CheckWeights(context, 1, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 3, 0));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, IntegerVectorInput(context, 2));
  if (shape.empty() || shape.size() > 2 || context->input_shape(0).dim(1) != static_cast<int64_t>(shape.size()) ||
      context->input_shape(0).dim(0) != context->input_shape(1).dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("indices of shape ", context->input_shape(0).ToString(),
                                                   " and values of shape ", context->input_shape(1).ToString(),
                                                   " do not make a sparse tensor of ", shape.size(),
                                                   " dimensions, of which one or two are counted"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t size, IntegerInput(context, 3));
  PF_RETURN_IF_ERROR(CheckSize(size));
  return SetCheckedShape(context, 0, shape.size() == 2 ? Shape({shape[0], size}) : Shape({size}));
}

// Counts value i in row row(i). Ignores values that are not less than `size`.
template <typename T, typename Index, typename Row>
absl::Status Count(ComputeContext* context, const Index* values, int64_t count, int64_t size, int weights_input,
                   bool is_binary, Row row) {
  const T* weights =
      context->input_shape(weights_input).num_elements() > 0 ? context->input<T>(weights_input) : nullptr;
  T* output = context->output<T>(0);
  std::fill_n(output, context->output_shape(0).num_elements(), T{0});
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("found ", values[i], " at element ", i, ", expected 0 or more"));
    }
    if (values[i] >= size) continue;
    T& bin = output[row(i) * size + values[i]];
    const T weight = weights == nullptr ? T{1} : weights[i];
    if (is_binary) {
      bin = T{1};
    } else if constexpr (std::is_integral_v<T>) {
      bin = static_cast<T>(static_cast<uint64_t>(bin) + static_cast<uint64_t>(weight));
    } else {
      bin += weight;
    }
  }
  return absl::OkStatus();
}

// Calls f(type of the weights, type of the values).
template <typename F>
absl::Status Dispatch(ComputeContext* context, int values_input, F f) {
  absl::Status status;
  DispatchOn<int32_t, int64_t, float, double>(context->output_at(0).dtype, [&](auto tag) {
    DispatchOn<int32_t, int64_t>(context->input_at(values_input).dtype, [&](auto index) { status = f(tag, index); });
  });
  return status;
}

absl::Status ComputeDense(ComputeContext* context) {
  bool is_binary = false;
  if (context->node().op() == ops::kDenseBincount) {
    PF_ASSIGN_OR_RETURN(is_binary, BoolAttr(context->node(), "binary_output"));
  }
  const Shape& out = context->output_shape(0);
  const int64_t size = out.dim(out.rank() - 1), count = context->input_shape(0).num_elements();
  const int64_t columns =
      out.rank() == 2 ? std::max<int64_t>(context->input_shape(0).dim(1), 1) : std::max<int64_t>(count, 1);
  return Dispatch(context, 0, [&](auto tag, auto index) {
    using Index = typename decltype(index)::type;
    return Count<typename decltype(tag)::type, Index>(context, context->input<Index>(0), count, size, 2, is_binary,
                                                      [&](int64_t i) { return i / columns; });
  });
}

absl::Status ComputeRagged(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool is_binary, BoolAttr(context->node(), "binary_output"));
  const int64_t* splits = context->input<int64_t>(0);
  const int64_t rows = context->output_shape(0).dim(0), count = context->input_shape(1).num_elements();
  for (int64_t row = 0; row <= rows; ++row) {
    const bool fits = row == 0 ? splits[0] == 0 : splits[row] >= splits[row - 1];
    if (fits && (row < rows || splits[row] == count)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the splits have ", splits[row], " at element ", row,
                                                   ", expected ascending numbers from 0 to ", count));
  }
  return Dispatch(context, 1, [&](auto tag, auto index) {
    using Index = typename decltype(index)::type;
    int64_t row = 0;
    return Count<typename decltype(tag)::type, Index>(context, context->input<Index>(1), count,
                                                      context->output_shape(0).dim(1), 3, is_binary, [&](int64_t i) {
                                                        while (splits[row + 1] <= i) ++row;
                                                        return row;
                                                      });
  });
}

absl::Status ComputeSparse(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool is_binary, BoolAttr(context->node(), "binary_output"));
  const Shape& out = context->output_shape(0);
  const int64_t* indices = context->input<int64_t>(0);
  const int64_t count = context->input_shape(1).num_elements(), size = out.dim(out.rank() - 1);
  if (out.rank() == 2) {
    for (int64_t i = 0; i < count; ++i) {
      if (indices[2 * i] >= 0 && indices[2 * i] < out.dim(0)) continue;
      return absl::InvalidArgumentError(absl::StrCat("the indices have ", indices[2 * i], " at element ", i,
                                                     ", expected a row in [0, ", out.dim(0), ")"));
    }
  }
  return Dispatch(context, 1, [&](auto tag, auto index) {
    using Index = typename decltype(index)::type;
    return Count<typename decltype(tag)::type, Index>(context, context->input<Index>(1), count, size, 4, is_binary,
                                                      [&](int64_t i) { return out.rank() == 2 ? indices[2 * i] : 0; });
  });
}

Kernel CountingKernel(const char* formula) { return Kernel(formula).Types<int32_t, int64_t, float, double>("T"); }

}  // namespace

DEFINE_KERNEL(Bincount) {
  return CountingKernel("for each number below size, its count or the sum of its weights")
      .Prepare(PrepareDense)
      .Compute(ComputeDense);
}
DEFINE_KERNEL(DenseBincount) {
  return CountingKernel("for each row and number below size, its count, the sum of its weights, or whether it occurs")
      .Types<int32_t, int64_t>("Tidx")
      .Prepare(PrepareDense)
      .Compute(ComputeDense);
}
DEFINE_KERNEL(RaggedBincount) {
  return CountingKernel("DenseBincount for the rows of a ragged tensor")
      .Types<int32_t, int64_t>("Tidx")
      .Prepare(PrepareRagged)
      .Compute(ComputeRagged);
}
DEFINE_KERNEL(SparseBincount) {
  return CountingKernel("DenseBincount for the rows of a sparse tensor")
      .Types<int32_t, int64_t>("Tidx")
      .Prepare(PrepareSparse)
      .Compute(ComputeSparse);
}

}  // namespace permafrost

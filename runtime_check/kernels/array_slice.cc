// Ops that select a part of a tensor: Slice, StridedSlice, Reverse.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/moving_kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// A range of one input dimension: `count` elements first, first + step, ...
struct Range {
  int64_t first;
  int64_t step;
  int64_t count;
};

// Prepares the copy of these ranges, one per dimension of input 0, to output 0.
void PrepareRanges(PrepareContext* context, absl::Span<const Range> ranges) {
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  if (context->input_shape(0).num_elements() == 0) {
    context->SetState(std::move(copies));
    return;
  }
  const absl::InlinedVector<int64_t, 6> strides = RowMajorStrides(context->input_shape(0).dims());
  absl::InlinedVector<StridedCopy::Dim, 6> dims(ranges.size());
  int64_t offset = 0;
  int64_t to_stride = 1;
  for (int d = static_cast<int>(ranges.size()) - 1; d >= 0; --d) {
    dims[d] = {ranges[d].count, ranges[d].step * strides[d], to_stride};
    to_stride *= ranges[d].count;
    offset += ranges[d].first * strides[d];
  }
  copies->Add(0, offset, 0, 0, dims);
  context->SetState(std::move(copies));
}

absl::Status PrepareSlice(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> begin, IntegerVectorInput(context, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> size, IntegerVectorInput(context, 2));
  if (begin.size() != static_cast<size_t>(input.rank()) || size.size() != begin.size()) {
    return absl::InvalidArgumentError(absl::StrCat("'begin' has ", begin.size(), " elements and 'size' ", size.size(),
                                                   ", expected the rank ", input.rank()));
  }
  std::vector<Range> ranges;
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    const bool begins_inside = begin[d] >= 0 && begin[d] <= input.dim(d);
    const int64_t room = begins_inside ? input.dim(d) - begin[d] : 0;
    const int64_t count = size[d] == -1 ? room : size[d];
    if (!begins_inside || count < 0 || count > room) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", d, " of ", input.ToString(), " has no ", size[d], " elements from ", begin[d]));
    }
    ranges.push_back({begin[d], 1, count});
    output.AddDim(count);
  }
  PrepareRanges(context, ranges);
  context->SetOutputShape(0, std::move(output));
  return absl::OkStatus();
}

// --- StridedSlice ----------------------------------------------------------------------------------------------------

struct SliceSpec {
  std::vector<int64_t> begin, end, strides;
  uint32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;

  int size() const { return static_cast<int>(begin.size()); }
};

absl::StatusOr<uint32_t> Mask(const Node& node, absl::string_view name) {
  PF_ASSIGN_OR_RETURN(int64_t mask, IntAttr(node, name));
  return static_cast<uint32_t>(mask);
}

absl::StatusOr<SliceSpec> ReadSliceSpec(PrepareContext* context) {
  SliceSpec spec;
  PF_ASSIGN_OR_RETURN(spec.begin, IntegerVectorInput(context, 1));
  PF_ASSIGN_OR_RETURN(spec.end, IntegerVectorInput(context, 2));
  PF_ASSIGN_OR_RETURN(spec.strides, IntegerVectorInput(context, 3));
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(spec.begin_mask, Mask(node, "begin_mask"));
  PF_ASSIGN_OR_RETURN(spec.end_mask, Mask(node, "end_mask"));
  PF_ASSIGN_OR_RETURN(spec.ellipsis_mask, Mask(node, "ellipsis_mask"));
  PF_ASSIGN_OR_RETURN(spec.new_axis_mask, Mask(node, "new_axis_mask"));
  PF_ASSIGN_OR_RETURN(spec.shrink_axis_mask, Mask(node, "shrink_axis_mask"));
  if (spec.end.size() != spec.begin.size() || spec.strides.size() != spec.begin.size()) {
    return absl::InvalidArgumentError(absl::StrCat("'begin', 'end' and 'strides' have ", spec.begin.size(), ", ",
                                                   spec.end.size(), " and ", spec.strides.size(),
                                                   " elements, expected the same number"));
  }
  if (spec.size() >= 32) {
    return absl::InvalidArgumentError(absl::StrCat("'begin' has ", spec.size(), " elements, expected at most 31"));
  }
  if ((spec.ellipsis_mask & (spec.ellipsis_mask - 1)) != 0) {
    return absl::InvalidArgumentError("'ellipsis_mask' has several bits, expected one ellipsis at most");
  }
  return spec;
}

// Returns the range of a dimension that entry i of the specification selects.
absl::StatusOr<Range> RangeOf(const SliceSpec& spec, int i, int64_t dim) {
  const uint32_t bit = 1u << i;
  const int64_t stride = spec.strides[i];
  if (stride == 0) return absl::InvalidArgumentError(absl::StrCat("'strides' is 0 at ", i));
  if (spec.shrink_axis_mask & bit) {
    const int64_t index = spec.begin[i] < 0 ? spec.begin[i] + dim : spec.begin[i];
    if (stride < 0) return absl::InvalidArgumentError(absl::StrCat("'strides' is negative at the single index ", i));
    if (index < 0 || index >= dim) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", spec.begin[i], " of a dimension of ", dim, " is out of bounds"));
    }
    return Range{index, 1, 1};
  }
  // The limits for begin and end; for negative strides the end is one before the first element.
  const int64_t lowest = stride > 0 ? 0 : -1;
  const int64_t highest = stride > 0 ? dim : dim - 1;
  auto resolve = [&](int64_t x) { return std::clamp(x < 0 ? x + dim : x, lowest, highest); };
  const int64_t begin = spec.begin_mask & bit ? (stride > 0 ? lowest : highest) : resolve(spec.begin[i]);
  const int64_t end = spec.end_mask & bit ? (stride > 0 ? highest : lowest) : resolve(spec.end[i]);
  const int64_t interval = end - begin;
  if (interval == 0 || (interval < 0) != (stride < 0)) return Range{0, 1, 0};
  const int64_t count = interval / stride + (interval % stride != 0);
  // With one element the stride is not used, and may have any size.
  return Range{begin, count == 1 ? 1 : stride, count};
}

absl::Status PrepareStridedSlice(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(SliceSpec spec, ReadSliceSpec(context));
  // Counts the dimensions of entries other than the ellipsis and new axes; the ellipsis covers the other dimensions.
  int taken = 0;
  for (int i = 0; i < spec.size(); ++i) {
    if (!((spec.ellipsis_mask | spec.new_axis_mask) & (1u << i))) ++taken;
  }
  if (taken > input.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the slice indexes ", taken, " dimensions of an input of shape ", input.ToString()));
  }
  std::vector<Range> ranges;
  Shape output;
  auto take_all = [&](int count) {
    for (int k = 0; k < count; ++k) {
      const int64_t dim = input.dim(static_cast<int>(ranges.size()));
      ranges.push_back({0, 1, dim});
      output.AddDim(dim);
    }
  };
  for (int i = 0; i < spec.size(); ++i) {
    const uint32_t bit = 1u << i;
    if (spec.ellipsis_mask & bit) {
      take_all(input.rank() - taken);
    } else if (spec.new_axis_mask & bit) {
      output.AddDim(1);
    } else {
      PF_ASSIGN_OR_RETURN(Range range, RangeOf(spec, i, input.dim(static_cast<int>(ranges.size()))));
      ranges.push_back(range);
      if (!(spec.shrink_axis_mask & bit)) output.AddDim(range.count);
    }
  }
  take_all(input.rank() - static_cast<int>(ranges.size()));
  PrepareRanges(context, ranges);
  context->SetOutputShape(0, std::move(output));
  return absl::OkStatus();
}

// --- Reverse ---------------------------------------------------------------------------------------------------------

absl::Status PrepareReverseWith(PrepareContext* context, const std::vector<bool>& reversed) {
  const Shape& input = context->input_shape(0);
  std::vector<Range> ranges;
  for (int d = 0; d < input.rank(); ++d) {
    ranges.push_back(reversed[d] ? Range{input.dim(d) - 1, -1, input.dim(d)} : Range{0, 1, input.dim(d)});
  }
  PrepareRanges(context, ranges);
  return SameShape(context);
}

absl::Status PrepareReverseV2(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> axes, IntegerVectorInput(context, 1));
  std::vector<bool> reversed(context->input_shape(0).rank(), false);
  for (int64_t axis : axes) {
    PF_ASSIGN_OR_RETURN(int resolved, ResolveAxis(axis, context->input_shape(0).rank()));
    if (reversed[resolved]) return absl::InvalidArgumentError(absl::StrCat("axis ", resolved, " is given twice"));
    reversed[resolved] = true;
  }
  return PrepareReverseWith(context, reversed);
}

// The predecessor of ReverseV2, with one bool per dimension.
absl::Status PrepareReverse(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  const int rank = context->input_shape(0).rank();
  if (context->input_shape(1).dim(0) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("'dims' has ", context->input_shape(1).dim(0), " elements, expected the rank ", rank));
  }
  const Tensor* dims = context->input_value(1);
  if (dims == nullptr) return context->NeedsValueOf(1);
  std::vector<bool> reversed(rank, false);
  for (int d = 0; d < rank; ++d) reversed[d] = dims->elements<bool>()[d];
  return PrepareReverseWith(context, reversed);
}

}  // namespace

DEFINE_KERNEL(Slice) {
  return MovingKernel<PrepareSlice>("a block of the input: `size` elements starting at `begin`, in each dimension");
}

DEFINE_KERNEL(StridedSlice) {
  return MovingKernel<PrepareStridedSlice>("the elements begin, begin + stride, ... before end, in each dimension");
}

DEFINE_KERNEL(ReverseV2) {
  return MovingKernel<PrepareReverseV2>("the input with its elements reversed along the axes");
}

DEFINE_KERNEL(Reverse) {
  return MovingKernel<PrepareReverse>("the input with its elements reversed along the dimensions marked true");
}

}  // namespace permafrost

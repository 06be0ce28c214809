// Shape functions of reductions, ArgMax, TopK and losses.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

absl::Status TopK(ShapeContext* context, std::optional<int64_t> k) {
  if (k && *k < 0) return absl::InvalidArgumentError(absl::StrCat("k is ", *k, ", expected 0 or more"));
  Shape output = context->input(0);
  if (!output.has_rank()) return absl::OkStatus();
  if (output.rank() == 0) return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  const int last = output.rank() - 1;
  if (k && output.dim(last) >= 0 && *k > output.dim(last)) {
    return absl::InvalidArgumentError(absl::StrCat("k is ", *k, ", but the last dimension has ", output.dim(last)));
  }
  output.set_dim(last, k.value_or(kUnknownDim));
  context->set_output(0, output);
  context->set_output(1, std::move(output));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReductionShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool keep_dims, BoolAttr(context->node(), "keep_dims"));
  const Shape& input = context->input(0);
  const KnownIntegers* axes = AllIntegers(*context, 1);
  if (!input.has_rank()) {
    return absl::OkStatus();
  }
  if (axes == nullptr) {
    // The number of axes does not determine the rank, because the same axis may be given twice.
    if (keep_dims) context->set_output(0, UnknownDims(input.rank()));
    return absl::OkStatus();
  }
  std::vector<bool> reduced(input.rank(), false);
  for (const int64_t axis : axes->elements) {
    PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, input.rank()));
    reduced[at] = true;
  }
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (!reduced[i]) {
      output.AddDim(input.dim(i));
    } else if (keep_dims) {
      output.AddDim(1);
    }
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status ArgMaxShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 1));
  const Shape& input = context->input(0);
  if (!input.has_rank()) return absl::OkStatus();
  if (input.rank() <= 1) {
    context->set_output(0, Shape());
    return absl::OkStatus();
  }
  if (!axis) {
    context->set_output(0, UnknownDims(input.rank() - 1));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, input.rank()));
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (i != at) output.AddDim(input.dim(i));
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status TopKShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> k, KnownScalar(*context, 1));
  return TopK(context, k);
}

absl::Status TopKAttrShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t k, IntAttr(context->node(), "k"));
  return TopK(context, k);
}

// Gives the loss one value per row, and the gradient the shape of the logits.
absl::Status SparseSoftmaxLossShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 2));
  PF_RETURN_IF_ERROR(context->RequireRank(1, 1));
  PF_ASSIGN_OR_RETURN(
      const int64_t rows,
      MergeDims(context->input(0).has_rank() ? context->input(0).dim(0) : kUnknownDim,
                context->input(1).has_rank() ? context->input(1).dim(0) : kUnknownDim, "rows of logits and labels"));
  context->set_output(0, Shape({rows}));
  Shape gradient = context->input(0).has_rank() ? context->input(0) : UnknownDims(2);
  gradient.set_dim(0, rows);
  context->set_output(1, std::move(gradient));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes

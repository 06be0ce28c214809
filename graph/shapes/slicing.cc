// Shape functions of ops that slice, split, concatenate or pad.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"
#include "graph/shapes/strided_slice.h"

namespace permafrost::shapes {
namespace {

// Splits along a known axis: the outputs have the shape of the input, with `sizes` along the axis.
absl::Status SetPieces(ShapeContext* context, const Shape& input, int axis, const std::vector<int64_t>& sizes) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    Shape output = input;
    output.set_dim(axis, sizes[i]);
    context->set_output(i, std::move(output));
  }
  return absl::OkStatus();
}

absl::Status SetUnknownPieces(ShapeContext* context, const Shape& input) {
  if (!input.has_rank()) return absl::OkStatus();
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, UnknownDims(input.rank()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> ConcatenatedShape(const ShapeContext& context, int first, int count,
                                        std::optional<int64_t> axis) {
  int rank = -1;
  for (int i = first; i < first + count; ++i) {
    const Shape& input = context.input(i);
    if (!input.has_rank()) continue;
    if (rank >= 0 && input.rank() != rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", input.ToString(), ", expected rank ", rank));
    }
    rank = input.rank();
  }
  if (rank < 0) return Shape::UnknownRank();
  if (!axis) return UnknownDims(rank);
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, rank));
  Shape output = UnknownDims(rank);
  output.set_dim(at, 0);
  for (int i = first; i < first + count; ++i) {
    const Shape& input = context.input(i);
    for (int k = 0; k < rank; ++k) {
      const int64_t dim = input.has_rank() ? input.dim(k) : kUnknownDim;
      absl::StatusOr<int64_t> joined =
          k == at ? AddDims(output.dim(k), dim) : MergeDims(output.dim(k), dim, absl::StrCat("dimension ", k));
      if (!joined.ok()) return Annotate(joined.status(), absl::StrCat("input ", i));
      output.set_dim(k, *joined);
    }
  }
  return output;
}

absl::Status SliceShape(ShapeContext* context) {
  const Shape& input = context->input(0);
  const KnownIntegers* begin = context->integers(1);
  const KnownIntegers* size = context->integers(2);
  int rank = input.has_rank() ? input.rank() : -1;
  for (const KnownIntegers* vector : {begin, size}) {
    if (vector == nullptr) continue;
    if (rank < 0 && vector->elements.size() <= kMaxRank) rank = static_cast<int>(vector->elements.size());
    if (vector->elements.size() != static_cast<size_t>(rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("begin or size has ", vector->elements.size(), " entries, expected ", rank));
    }
  }
  if (rank < 0) return absl::OkStatus();
  Shape output = UnknownDims(rank);
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = input.has_rank() ? input.dim(i) : kUnknownDim;
    const int64_t from = begin == nullptr ? KnownIntegers::kUnknown : begin->elements[i];
    const int64_t count = size == nullptr ? KnownIntegers::kUnknown : size->elements[i];
    const bool from_known = from != KnownIntegers::kUnknown;
    if (count == KnownIntegers::kUnknown) continue;
    if ((from_known && (from < 0 || (dim >= 0 && from > dim))) || count < -1 ||
        (dim >= 0 && count > dim - (from_known ? from : 0))) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " has the size ", dim, ", but begin is ",
                                                     from_known ? absl::StrCat(from) : "?", " and size is ", count));
    }
    if (count >= 0) {
      output.set_dim(i, count);
    } else if (from_known && dim >= 0) {
      output.set_dim(i, dim - from);
    }
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status StridedSliceShape(ShapeContext* context) {
  int64_t length = -1;  // Number of entries of begin, end and strides.
  for (int i = 1; i <= 3; ++i) {
    PF_RETURN_IF_ERROR(context->RequireRank(i, 1));
    if (context->input(i).has_rank()) length = std::max(length, context->input(i).dim(0));
  }
  if (!context->input(0).has_rank() || length < 0) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const StridedSliceMasks masks, ReadStridedSliceMasks(context->node()));
  PF_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                      PlanStridedSlice(context->input(0), length, masks, context->integers(1), context->integers(2),
                                       context->integers(3)));
  Shape output;
  for (const SlicedDimension& dimension : plan) {
    if (dimension.kind != SlicedDimension::Kind::kDropped) output.AddDim(dimension.count);
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status SplitShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 0));
  const Shape& input = context->input(1);
  const int count = context->num_outputs();
  if (!axis || !input.has_rank() || count == 0) return SetUnknownPieces(context, input);
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, input.rank()));
  const int64_t dim = input.dim(at);
  if (dim >= 0 && dim % count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", at, " has the size ", dim, ", which is not a multiple of ", count, " pieces"));
  }
  return SetPieces(context, input, at, std::vector<int64_t>(count, dim < 0 ? kUnknownDim : dim / count));
}

absl::Status SplitVShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 2));
  const Shape& input = context->input(0);
  if (!axis || !input.has_rank()) return SetUnknownPieces(context, input);
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, input.rank()));
  const size_t count = static_cast<size_t>(context->num_outputs());
  const KnownIntegers* given = AllIntegers(*context, 1);
  if (given == nullptr) return SetPieces(context, input, at, std::vector<int64_t>(count, kUnknownDim));
  if (given->elements.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("input 1 has ", given->elements.size(), " sizes, expected ", count));
  }
  std::vector<int64_t> sizes = given->elements;
  int64_t sum = 0;
  int inferred = -1;
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i] < -1 || (sizes[i] == -1 && inferred >= 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 1 has the size ", sizes[i], ", expected sizes of 0 or more and at most one -1"));
    }
    if (sizes[i] == -1) {
      inferred = static_cast<int>(i);
    } else {
      PF_ASSIGN_OR_RETURN(sum, AddDims(sum, sizes[i]));
    }
  }
  const int64_t dim = input.dim(at);
  if (dim >= 0 && (inferred < 0 ? sum != dim : sum > dim)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sizes have the sum ", sum, ", but dimension ", at, " has the size ", dim));
  }
  if (inferred >= 0) sizes[inferred] = dim < 0 ? kUnknownDim : dim - sum;
  return SetPieces(context, input, at, sizes);
}

absl::Status ConcatShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 0));
  PF_ASSIGN_OR_RETURN(Shape output, ConcatenatedShape(*context, 1, context->num_inputs() - 1, axis));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status ConcatV2Shape(ShapeContext* context) {
  const int last = context->num_inputs() - 1;
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, last));
  PF_ASSIGN_OR_RETURN(Shape output, ConcatenatedShape(*context, 0, last, axis));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status ConcatOffsetShape(ShapeContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, context->input(i + 1));
  return absl::OkStatus();
}

absl::Status PadShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(1, 2));
  const Shape &input = context->input(0), &paddings = context->input(1);
  int rank = input.has_rank() ? input.rank() : -1;
  if (paddings.has_rank()) {
    if (paddings.dim(1) >= 0 && paddings.dim(1) != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 1 has the shape ", paddings.ToString(), ", expected [n,2]"));
    }
    if (rank < 0 && paddings.dim(0) >= 0 && paddings.dim(0) <= kMaxRank) rank = static_cast<int>(paddings.dim(0));
    if (paddings.dim(0) >= 0 && rank >= 0 && paddings.dim(0) != rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 1 has the shape ", paddings.ToString(), ", expected [", rank, ",2]"));
    }
  }
  if (rank < 0) return absl::OkStatus();
  Shape output = UnknownDims(rank);
  const KnownIntegers* known = context->integers(1);
  if (known != nullptr && input.has_rank() && known->elements.size() == 2 * static_cast<size_t>(rank)) {
    for (int i = 0; i < rank; ++i) {
      int64_t dim = input.dim(i);
      for (const int64_t extra : {known->elements[2 * i], known->elements[2 * i + 1]}) {
        if (extra < 0 && extra != KnownIntegers::kUnknown) {
          return absl::InvalidArgumentError(absl::StrCat("input 1 has the value ", extra, ", expected 0 or more"));
        }
        PF_ASSIGN_OR_RETURN(dim, AddDims(dim, extra));
      }
      output.set_dim(i, dim);
    }
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes

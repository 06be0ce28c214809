// Shape functions of ops that rearrange, repeat or relabel the elements of a tensor.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

absl::StatusOr<Shape> Reshaped(const ShapeContext& context) {
  const Shape& input = context.input(0);
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromInput(context, 1));
  const KnownIntegers* wanted = context.integers(1);
  if (wanted == nullptr || !shape.has_rank()) return shape;
  int inferred = -1;  // The dimension given as -1.
  bool others_known = true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (wanted->elements[i] == KnownIntegers::kUnknown) others_known = false;
    if (wanted->elements[i] != -1) continue;
    if (inferred >= 0) return absl::InvalidArgumentError("input 1 has the value -1 twice, expected at most once");
    inferred = i;
  }
  PF_ASSIGN_OR_RETURN(const int64_t count, CountElements(input));
  Shape rest = shape;
  if (inferred >= 0) rest.set_dim(inferred, 1);
  PF_ASSIGN_OR_RETURN(const int64_t given, CountElements(rest));
  if (inferred >= 0 && others_known && given > 0) {
    if (count >= 0) {
      if (count % given != 0) {
        return absl::InvalidArgumentError(absl::StrCat("the input has ", count,
                                                       " elements, which is not a multiple of the known dimensions of ",
                                                       shape.ToString()));
      }
      shape.set_dim(inferred, count / given);
    } else if (input.has_rank()) {
      // Both sides have one unknown dimension: reshaping [?,7,7,3] to [-1,147] gives an unknown dimension, never an
      // error.
      return shape;
    }
  } else if (inferred < 0 && others_known && count >= 0 && count != given) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", count, " elements, but the shape ", shape.ToString(), " has ", given));
  } else if (inferred < 0 && !others_known && count > 0) {
    // A single unknown dimension follows from the others.
    int unknown = -1, unknowns = 0;
    Shape known = shape;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) >= 0) continue;
      unknown = i;
      ++unknowns;
    }
    if (unknowns == 1) {
      known.set_dim(unknown, 1);
      PF_ASSIGN_OR_RETURN(const int64_t product, CountElements(known));
      if (product > 0 && count % product == 0) shape.set_dim(unknown, count / product);
    }
  }
  return shape;
}

}  // namespace

absl::Status ShapeShape(ShapeContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    const Shape& input = context->input(i);
    context->set_output(i, Shape({input.has_rank() ? input.rank() : kUnknownDim}));
  }
  return absl::OkStatus();
}

absl::Status ReshapeShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, Reshaped(*context));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status QuantizedReshapeShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(ReshapeShape(context));
  context->set_output(1, Shape());
  context->set_output(2, Shape());
  return absl::OkStatus();
}

absl::Status ExpandDimsShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 1));
  const Shape& input = context->input(0);
  if (!input.has_rank()) return absl::OkStatus();
  if (!axis) {
    if (input.rank() < kMaxRank) context->set_output(0, UnknownDims(input.rank() + 1));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, input.rank() + 1));
  Shape output;
  for (int i = 0; i <= input.rank(); ++i) {
    if (i == at) output.AddDim(1);
    if (i < input.rank()) output.AddDim(input.dim(i));
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status SqueezeShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntListAttr(context->node(), "squeeze_dims"));
  const Shape& input = context->input(0);
  if (!input.has_rank()) return absl::OkStatus();
  std::vector<bool> squeezed(input.rank(), false);
  for (const int64_t axis : axes) {
    PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, input.rank()));
    squeezed[at] = true;
    if (input.dim(at) > 1 || input.dim(at) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("attr 'squeeze_dims' names axis ", axis, " of the shape ",
                                                     input.ToString(), ", expected one of size 1"));
    }
  }
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    // An unknown dimension may be 1, so the rank is unknown.
    if (axes.empty() && input.dim(i) < 0) return absl::OkStatus();
    const bool drop = axes.empty() ? input.dim(i) == 1 : squeezed[i];
    if (!drop) output.AddDim(input.dim(i));
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status TransposeShape(ShapeContext* context) {
  const Shape& input = context->input(0);
  const KnownIntegers* permutation = context->integers(1);
  int rank = input.has_rank() ? input.rank() : -1;
  if (rank < 0 && permutation != nullptr && permutation->elements.size() <= kMaxRank) {
    rank = static_cast<int>(permutation->elements.size());
  }
  if (rank < 0) return absl::OkStatus();
  Shape output = UnknownDims(rank);
  if (permutation != nullptr) {
    if (permutation->elements.size() != static_cast<size_t>(rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the permutation has ", permutation->elements.size(), " entries, expected ", rank));
    }
    std::vector<bool> seen(rank, false);
    for (int i = 0; i < rank; ++i) {
      if (permutation->elements[i] == KnownIntegers::kUnknown) continue;
      PF_ASSIGN_OR_RETURN(const int from, NormalizeAxis(permutation->elements[i], rank));
      if (seen[from]) return absl::InvalidArgumentError(absl::StrCat("the permutation has the axis ", from, " twice"));
      seen[from] = true;
      if (input.has_rank()) output.set_dim(i, input.dim(from));
    }
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status PackShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(context->node(), "axis"));
  Shape merged = Shape::UnknownRank();
  for (int i = 0; i < context->num_inputs(); ++i) {
    PF_ASSIGN_OR_RETURN(merged, MergeShapes(merged, context->input(i)));
  }
  if (!merged.has_rank()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, merged.rank() + 1));
  Shape output;
  for (int i = 0; i <= merged.rank(); ++i) {
    if (i == at) output.AddDim(context->num_inputs());
    if (i < merged.rank()) output.AddDim(merged.dim(i));
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status UnpackShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(context->node(), "axis"));
  const Shape& input = context->input(0);
  if (!input.has_rank()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, input.rank()));
  PF_ASSIGN_OR_RETURN(const int64_t count,
                      MergeDims(input.dim(at), context->num_outputs(), "outputs and unpacked size"));
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (i != at) output.AddDim(input.dim(i));
  }
  for (int i = 0; i < count; ++i) context->set_output(i, output);
  return absl::OkStatus();
}

absl::Status TileShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const Shape multiples, ShapeFromInput(*context, 1));
  const Shape& input = context->input(0);
  if (!input.has_rank()) {
    if (multiples.has_rank()) context->set_output(0, UnknownDims(multiples.rank()));
    return absl::OkStatus();
  }
  Shape output = UnknownDims(input.rank());
  if (multiples.has_rank()) {
    if (multiples.rank() != input.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 1 has ", multiples.rank(), " entries, expected ", input.rank()));
    }
    for (int i = 0; i < input.rank(); ++i) {
      PF_ASSIGN_OR_RETURN(const int64_t dim, MultiplyDims(input.dim(i), multiples.dim(i)));
      output.set_dim(i, dim);
    }
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status EnsureShapeShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const Shape expected, ShapeAttr(context->node(), "shape"));
  PF_ASSIGN_OR_RETURN(Shape merged, MergeShapes(expected, context->input(0)));
  context->set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status BitcastShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const DType from, TypeAttr(context->node(), "T"));
  PF_ASSIGN_OR_RETURN(const DType to, TypeAttr(context->node(), "type"));
  const int64_t from_size = static_cast<int64_t>(SizeOf(from)), to_size = static_cast<int64_t>(SizeOf(to));
  const Shape& input = context->input(0);
  if (!input.has_rank() || from_size == 0 || to_size == 0) return absl::OkStatus();
  Shape output = input;
  if (from_size > to_size) {
    output.AddDim(from_size / to_size);
  } else if (from_size < to_size) {
    const int64_t ratio = to_size / from_size;
    if (input.rank() == 0 || (input.dim(input.rank() - 1) >= 0 && input.dim(input.rank() - 1) != ratio)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 0 has the shape ", input.ToString(), ", expected a last dimension of ", ratio));
    }
    output = Shape(input.dims().subspan(0, input.rank() - 1));
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status OneHotShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(context->node(), "axis"));
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> depth, KnownScalar(*context, 1));
  if (depth && *depth < 0) {
    return absl::InvalidArgumentError(absl::StrCat("input 1 specifies depth ", *depth, ", expected 0 or more"));
  }
  const Shape& indices = context->input(0);
  if (!indices.has_rank()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, indices.rank() + 1));
  Shape output;
  for (int i = 0; i <= indices.rank(); ++i) {
    if (i == at) output.AddDim(depth.value_or(kUnknownDim));
    if (i < indices.rank()) output.AddDim(indices.dim(i));
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status WhereShape(ShapeContext* context) {
  const Shape& input = context->input(0);
  context->set_output(0, Shape({kUnknownDim, input.has_rank() ? input.rank() : kUnknownDim}));
  return absl::OkStatus();
}

// Handles MatrixDiag: [..., n] becomes [..., n, n].
absl::Status DiagShape(ShapeContext* context) {
  Shape output = context->input(0);
  if (!output.has_rank()) return absl::OkStatus();
  if (output.rank() == 0) return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  output.AddDim(output.dim(output.rank() - 1));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status BroadcastArgsShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 1));
  PF_RETURN_IF_ERROR(context->RequireRank(1, 1));
  const Shape &a = context->input(0), &b = context->input(1);
  const bool known = a.IsFullyKnown() && b.IsFullyKnown();
  context->set_output(0, Shape({known ? std::max(a.dim(0), b.dim(0)) : kUnknownDim}));
  return absl::OkStatus();
}

absl::Status SparseToDenseShape(ShapeContext* context) { return ShapeFromSecondInput(context); }

}  // namespace permafrost::shapes

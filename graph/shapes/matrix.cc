// Shape functions of matrix products and Fourier transforms.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

// Appends the dimensions of the product of a and b (their last two dimensions) to *output.
absl::Status AppendProduct(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b, Shape* output) {
  const auto dim = [](const Shape& shape, bool first) {
    return shape.has_rank() ? shape.dim(shape.rank() - (first ? 2 : 1)) : kUnknownDim;
  };
  const absl::StatusOr<int64_t> inner = MergeDims(dim(a, transpose_a), dim(b, !transpose_b), "inner dimensions");
  if (!inner.ok()) return inner.status();
  output->AddDim(dim(a, !transpose_a));
  output->AddDim(dim(b, transpose_b));
  return absl::OkStatus();
}

// The last `rank` dimensions are those of the transform, whose size is input 1.
absl::Status FourierShape(ShapeContext* context, int rank, bool inverse) {
  Shape output = context->input(0);
  if (!output.has_rank()) return absl::OkStatus();
  if (output.rank() < rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", output.ToString(), ", expected rank ", rank, " or more"));
  }
  const KnownIntegers* length = AllIntegers(*context, 1);
  if (length != nullptr && length->elements.size() != static_cast<size_t>(rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 1 has ", length->elements.size(), " elements, expected ", rank));
  }
  for (int i = 0; i < rank; ++i) {
    const int dim = output.rank() - rank + i;
    int64_t points = length == nullptr ? kUnknownDim : length->elements[static_cast<size_t>(i)];
    if (length != nullptr && points < 0) {
      return absl::InvalidArgumentError(absl::StrCat("input 1 has the length ", points, ", expected 0 or more"));
    }
    if (i == rank - 1 && !inverse && points > 0) points = points / 2 + 1;
    output.set_dim(dim, points);
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace

absl::Status MatMulShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 2));
  PF_RETURN_IF_ERROR(context->RequireRank(1, 2));
  PF_ASSIGN_OR_RETURN(const bool transpose_a, BoolAttr(context->node(), "transpose_a"));
  PF_ASSIGN_OR_RETURN(const bool transpose_b, BoolAttr(context->node(), "transpose_b"));
  Shape output;
  PF_RETURN_IF_ERROR(AppendProduct(context->input(0), context->input(1), transpose_a, transpose_b, &output));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status QuantizedMatMulShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(MatMulShape(context));
  context->set_output(1, Shape());
  context->set_output(2, Shape());
  return absl::OkStatus();
}

absl::Status BatchMatMulShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool adj_x, BoolAttr(context->node(), "adj_x"));
  PF_ASSIGN_OR_RETURN(const bool adj_y, BoolAttr(context->node(), "adj_y"));
  const Shape &a = context->input(0), &b = context->input(1);
  for (const Shape* shape : {&a, &b}) {
    if (shape->has_rank() && shape->rank() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("found the shapes ", a.ToString(), " and ", b.ToString(), ", expected rank 2 or more"));
    }
  }
  if (!a.has_rank() || !b.has_rank()) return absl::OkStatus();
  const Shape batch_a(a.dims().subspan(0, a.rank() - 2)), batch_b(b.dims().subspan(0, b.rank() - 2));
  const bool broadcasts = context->node().op() != ops::kBatchMatMul;
  PF_ASSIGN_OR_RETURN(Shape output, broadcasts ? BroadcastShapes(batch_a, batch_b) : MergeShapes(batch_a, batch_b));
  PF_RETURN_IF_ERROR(AppendProduct(a, b, adj_x, adj_y, &output));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

// Equations with an ellipsis give an unknown shape.
absl::Status EinsumShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string equation, StringAttr(context->node(), "equation"));
  const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(equation, absl::MaxSplits("->", 1));
  if (absl::string_view(equation).find("->") == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'equation' is '", equation, "', expected a '->'"));
  }
  if (absl::string_view(equation).find('.') != absl::string_view::npos) return absl::OkStatus();
  const std::vector<absl::string_view> terms = absl::StrSplit(sides.first, ',');
  if (terms.size() != static_cast<size_t>(context->num_inputs())) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'equation' is '", equation, "', expected ", context->num_inputs(), " terms"));
  }
  int64_t sizes[256];
  bool seen[256] = {};
  for (size_t i = 0; i < terms.size(); ++i) {
    const int rank = static_cast<int>(std::min<size_t>(terms[i].size(), kMaxRank + 1));
    PF_RETURN_IF_ERROR(context->RequireRank(static_cast<int>(i), rank));
    for (int k = 0; k < rank; ++k) {
      const uint8_t label = static_cast<uint8_t>(terms[i][k]);
      const Shape& input = context->input(static_cast<int>(i));
      const int64_t dim = input.has_rank() ? input.dim(k) : kUnknownDim;
      // A dimension of 1 is broadcast, as in TensorFlow.
      if (!seen[label] || (sizes[label] == 1 && dim != 1)) {
        sizes[label] = dim;
      } else if (dim != 1) {
        PF_ASSIGN_OR_RETURN(sizes[label],
                            MergeDims(sizes[label], dim, absl::StrCat("label '", terms[i].substr(k, 1), "'")));
      }
      seen[label] = true;
    }
  }
  Shape output;
  for (const char c : sides.second) {
    const uint8_t label = static_cast<uint8_t>(c);
    if (!seen[label]) {
      return absl::InvalidArgumentError(
          absl::StrCat("attr 'equation' is '", equation, "', expected output labels that occur in an input"));
    }
    if (output.rank() >= kMaxRank)
      return absl::InvalidArgumentError("attr 'equation' specifies a rank above the limit of 254");
    output.AddDim(sizes[label]);
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status RfftShape(ShapeContext* context) { return FourierShape(context, 1, /*inverse=*/false); }
absl::Status IrfftShape(ShapeContext* context) { return FourierShape(context, 1, /*inverse=*/true); }
absl::Status Rfft2DShape(ShapeContext* context) { return FourierShape(context, 2, /*inverse=*/false); }
absl::Status Irfft2DShape(ShapeContext* context) { return FourierShape(context, 2, /*inverse=*/true); }

}  // namespace permafrost::shapes

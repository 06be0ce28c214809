// Shape functions of ops that gather, scatter or group by index.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

// Appends the dimensions of `from` in [first, last) to *to.
void AppendDims(const Shape& from, int first, int last, Shape* to) {
  for (int i = first; i < last; ++i) to->AddDim(from.dim(i));
}

// Sets the output shape to [params before axis] + [indices after batch_dims] + [params after axis].
absl::Status Gather(ShapeContext* context, std::optional<int64_t> axis, int64_t batch_dims) {
  const Shape &params = context->input(0), &indices = context->input(1);
  if (!indices.has_rank() || !params.has_rank()) return absl::OkStatus();
  if (params.rank() == 0) return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  if (batch_dims < -indices.rank() || batch_dims > indices.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'batch_dims' is ", batch_dims, ", expected one for indices of rank ", indices.rank()));
  }
  const int batch = static_cast<int>(batch_dims < 0 ? batch_dims + indices.rank() : batch_dims);
  if (!axis) {
    const int rank = params.rank() - 1 + indices.rank() - batch;
    if (rank >= 0 && rank <= kMaxRank) context->set_output(0, UnknownDims(rank));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, params.rank()));
  if (batch > at) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'batch_dims' is ", batch_dims, ", expected at most the axis ", at));
  }
  Shape output;
  for (int i = 0; i < batch; ++i) {
    PF_ASSIGN_OR_RETURN(const int64_t dim, MergeDims(params.dim(i), indices.dim(i), "batch dimensions"));
    output.AddDim(dim);
  }
  AppendDims(params, batch, at, &output);
  AppendDims(indices, batch, indices.rank(), &output);
  AppendDims(params, at + 1, params.rank(), &output);
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace

absl::Status GatherShape(ShapeContext* context) { return Gather(context, 0, 0); }

absl::Status GatherV2Shape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t batch_dims, IntAttr(context->node(), "batch_dims"));
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 2));
  return Gather(context, axis, batch_dims);
}

absl::Status GatherNdShape(ShapeContext* context) {
  const Shape &params = context->input(0), &indices = context->input(1);
  if (!params.has_rank() || !indices.has_rank()) return absl::OkStatus();
  if (indices.rank() == 0) return absl::InvalidArgumentError("input 1 is a scalar, expected rank 1 or more");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return absl::OkStatus();
  if (depth > params.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("input 1 has the shape ", indices.ToString(), ", expected at most ",
                                                   params.rank(), " indices in a row"));
  }
  Shape output;
  AppendDims(indices, 0, indices.rank() - 1, &output);
  AppendDims(params, static_cast<int>(depth), params.rank(), &output);
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status ScatterNdShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeFromInput(*context, 2));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status UniqueShape(ShapeContext* context) {
  if (context->node().op() == ops::kUniqueV2) return absl::OkStatus();
  context->set_output(0, Shape({kUnknownDim}));
  context->set_output(1, context->input(0));
  return absl::OkStatus();
}

absl::Status SegmentShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(1, 1));
  Shape output = context->input(0);
  if (!output.has_rank()) return absl::OkStatus();
  if (output.rank() == 0) return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  output.set_dim(0, kUnknownDim);
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status UnsortedSegmentShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> segments, KnownScalar(*context, 2));
  const Shape &data = context->input(0), &ids = context->input(1);
  if (!data.has_rank() || !ids.has_rank()) return absl::OkStatus();
  if (ids.rank() > data.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 1 has the shape ", ids.ToString(), ", expected a prefix of ", data.ToString()));
  }
  if (segments && *segments < 0) {
    return absl::InvalidArgumentError(absl::StrCat("input 2 specifies ", *segments, " segments, expected 0 or more"));
  }
  Shape output({segments.value_or(kUnknownDim)});
  AppendDims(data, ids.rank(), data.rank(), &output);
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes

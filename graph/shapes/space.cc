// Shape functions of ops that move blocks between space, batch and depth.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

// Returns dim / divisor; unknown stays unknown. Returns InvalidArgument if the division is not exact or the divisor is
// below 1.
absl::StatusOr<int64_t> DivideExactly(int64_t dim, int64_t divisor, absl::string_view what) {
  if (divisor < 1) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is divided by ", divisor, ", expected 1 or more"));
  }
  if (dim < 0) return kUnknownDim;
  if (dim % divisor == 0) return dim / divisor;
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", dim, ", expected a multiple of ", divisor));
}

// Returns the sum of the paddings or crops of dimension k, which `edges` holds as pairs, or kUnknownDim.
int64_t EdgeSum(const KnownIntegers* edges, size_t k, bool* negative) {
  if (edges == nullptr || edges->elements.size() < 2 * k + 2) return kUnknownDim;
  const int64_t before = edges->elements[2 * k], after = edges->elements[2 * k + 1];
  if (before == KnownIntegers::kUnknown || after == KnownIntegers::kUnknown) return kUnknownDim;
  int64_t sum;
  *negative = before < 0 || after < 0 || __builtin_add_overflow(before, after, &sum);
  return *negative ? kUnknownDim : sum;
}

// Moves blocks of dimensions 1 .. blocks into the batch (to_batch) or out of it. The batch grows or shrinks by the
// product of the block sizes.
absl::StatusOr<Shape> MoveBlocks(const Shape& input, const std::vector<int64_t>& blocks, const KnownIntegers* edges,
                                 bool to_batch) {
  if (!input.has_rank()) return Shape::UnknownRank();
  if (input.rank() < static_cast<int>(blocks.size()) + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", input.ToString(), ", expected rank ", blocks.size() + 1, " or more"));
  }
  Shape output = input;
  int64_t batch = input.dim(0);
  for (size_t k = 0; k < blocks.size(); ++k) {
    const int index = static_cast<int>(k) + 1;
    if (blocks[k] < 1 && blocks[k] != KnownIntegers::kUnknown) {
      return absl::InvalidArgumentError(absl::StrCat("block ", k, " is ", blocks[k], ", expected 1 or more"));
    }
    const bool known = blocks[k] != KnownIntegers::kUnknown;
    bool negative = false;
    const int64_t edge = EdgeSum(edges, k, &negative);
    if (negative) return absl::InvalidArgumentError(absl::StrCat("paddings or crops of block ", k, " are below 0"));
    int64_t dim = input.dim(index);
    if (to_batch) {
      PF_ASSIGN_OR_RETURN(dim, AddDims(dim, edge));
      if (known) {
        PF_ASSIGN_OR_RETURN(dim, DivideExactly(dim, blocks[k], absl::StrCat("padded dimension ", index)));
        PF_ASSIGN_OR_RETURN(batch, MultiplyDims(batch, blocks[k]));
      }
    } else {
      if (known) {
        PF_ASSIGN_OR_RETURN(dim, MultiplyDims(dim, blocks[k]));
        PF_ASSIGN_OR_RETURN(batch, DivideExactly(batch, blocks[k], "the batch"));
      }
      if (dim >= 0 && edge > dim) {
        return absl::InvalidArgumentError(absl::StrCat("dimension ", index, " of size ", dim, " is cropped by ", edge));
      }
      dim = dim < 0 || edge < 0 ? kUnknownDim : dim - edge;
    }
    output.set_dim(index, known ? dim : kUnknownDim);
    if (!known) batch = kUnknownDim;
  }
  output.set_dim(0, batch);
  return output;
}

absl::Status MoveBlocksOfInput(ShapeContext* context, bool to_batch) {
  const KnownIntegers* blocks = context->integers(1);
  if (blocks == nullptr) {
    if (context->input(0).has_rank()) context->set_output(0, UnknownDims(context->input(0).rank()));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(Shape output, MoveBlocks(context->input(0), blocks->elements, context->integers(2), to_batch));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status MoveSquareBlocks(ShapeContext* context, bool to_batch) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_ASSIGN_OR_RETURN(const int64_t block, IntAttr(context->node(), "block_size"));
  PF_ASSIGN_OR_RETURN(Shape output, MoveBlocks(context->input(0), {block, block}, context->integers(1), to_batch));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status MoveDepth(ShapeContext* context, bool to_depth) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_ASSIGN_OR_RETURN(const int64_t block, IntAttr(context->node(), "block_size"));
  if (block < 1 || block > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'block_size' is ", block, ", expected 1 to 2^31 - 1"));
  }
  PF_ASSIGN_OR_RETURN(const std::optional<ImageLayout> layout, LayoutOf(context->node(), 2));
  if (!layout || !context->input(0).has_rank()) return absl::OkStatus();
  Shape output = context->input(0);
  const int64_t area = block * block, channels = output.dim(layout->channel);
  PF_ASSIGN_OR_RETURN(const int64_t depth, to_depth ? MultiplyDims(channels, area)
                                                    : DivideExactly(channels, area, "the number of channels"));
  output.set_dim(layout->channel, depth);
  for (const int index : layout->spatial) {
    const int64_t dim = output.dim(index);
    PF_ASSIGN_OR_RETURN(const int64_t moved, to_depth ? DivideExactly(dim, block, absl::StrCat("dimension ", index))
                                                      : MultiplyDims(dim, block));
    output.set_dim(index, moved);
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace

absl::Status SpaceToBatchNDShape(ShapeContext* context) { return MoveBlocksOfInput(context, /*to_batch=*/true); }
absl::Status BatchToSpaceNDShape(ShapeContext* context) { return MoveBlocksOfInput(context, /*to_batch=*/false); }
absl::Status SpaceToBatchShape(ShapeContext* context) { return MoveSquareBlocks(context, /*to_batch=*/true); }
absl::Status BatchToSpaceShape(ShapeContext* context) { return MoveSquareBlocks(context, /*to_batch=*/false); }
absl::Status SpaceToDepthShape(ShapeContext* context) { return MoveDepth(context, /*to_depth=*/true); }
absl::Status DepthToSpaceShape(ShapeContext* context) { return MoveDepth(context, /*to_depth=*/false); }

}  // namespace permafrost::shapes

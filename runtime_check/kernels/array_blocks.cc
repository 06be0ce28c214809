// Ops that move elements between space, depth and batch: SpaceToDepth, DepthToSpace, SpaceToBatch, BatchToSpace.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/moving_kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// --- SpaceToDepth, DepthToSpace --------------------------------------------------------------------------------------

struct ImageShape {
  int64_t batch, height, width, depth, block;
  bool channels_last;
};

absl::StatusOr<ImageShape> ReadImageShape(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_ASSIGN_OR_RETURN(std::string format, StringAttr(context->node(), "data_format"));
  if (format != "NHWC" && format != "NCHW") {
    return absl::UnimplementedError(absl::StrCat("data_format is '", format, "', expected 'NHWC' or 'NCHW'"));
  }
  PF_ASSIGN_OR_RETURN(int64_t block, IntAttr(context->node(), "block_size"));
  // The square of the block size must fit in int64.
  if (block < 2 || block > (int64_t{1} << 30)) {
    return absl::InvalidArgumentError(absl::StrCat("block_size is ", block, ", expected at least 2"));
  }
  const Shape& input = context->input_shape(0);
  const bool last = format == "NHWC";
  return ImageShape{input.dim(0), input.dim(last ? 1 : 2), input.dim(last ? 2 : 3), input.dim(last ? 3 : 1), block,
                    last};
}

Shape MakeImage(const ImageShape& image, int64_t height, int64_t width, int64_t depth) {
  return image.channels_last ? Shape({image.batch, height, width, depth}) : Shape({image.batch, depth, height, width});
}

absl::Status PreparePermutation(PrepareContext* context, const Shape& output, absl::Span<const int64_t> from,
                                absl::Span<const int> order) {
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  copies->Add(0, 0, 0, 0, PermutedDims(from, order));
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareSpaceToDepth(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(ImageShape image, ReadImageShape(context));
  const int64_t block = image.block;
  if (image.height % block != 0 || image.width % block != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the image has ", image.height, " x ", image.width,
                                                   " pixels, expected multiples of the block size ", block));
  }
  const int64_t height = image.height / block;
  const int64_t width = image.width / block;
  int64_t depth;
  if (__builtin_mul_overflow(image.depth, block * block, &depth)) {
    return absl::InvalidArgumentError("the depth of the output exceeds int64");
  }
  const Shape output = MakeImage(image, height, width, depth);
  if (image.channels_last) {
    return PreparePermutation(context, output, {image.batch, height, block, width, block, image.depth},
                              {0, 1, 3, 2, 4, 5});
  }
  return PreparePermutation(context, output, {image.batch, image.depth, height, block, width, block},
                            {0, 3, 5, 1, 2, 4});
}

absl::Status PrepareDepthToSpace(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(ImageShape image, ReadImageShape(context));
  const int64_t block = image.block;
  int64_t height, width;
  if (image.depth % (block * block) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the image has ", image.depth, " channels, expected a multiple of ",
                                                   block * block, ", the square of the block size"));
  }
  if (__builtin_mul_overflow(image.height, block, &height) || __builtin_mul_overflow(image.width, block, &width)) {
    return absl::InvalidArgumentError("the size of the output exceeds int64");
  }
  const int64_t depth = image.depth / (block * block);
  const Shape output = MakeImage(image, height, width, depth);
  if (image.channels_last) {
    return PreparePermutation(context, output, {image.batch, image.height, image.width, block, block, depth},
                              {0, 1, 3, 2, 4, 5});
  }
  return PreparePermutation(context, output, {image.batch, block, block, depth, image.height, image.width},
                            {0, 3, 4, 1, 5, 2});
}

// --- SpaceToBatch, BatchToSpace --------------------------------------------------------------------------------------

// Block sizes and the padding or cropping of the spatial dimensions, which follow the batch.
struct Blocks {
  std::vector<int64_t> size, before, after;
  int64_t product = 1;  // Product of the sizes.

  int rank() const { return static_cast<int>(size.size()); }
};

absl::Status ReadMargins(PrepareContext* context, int input, int rank, Blocks* blocks) {
  const Shape& shape = context->input_shape(input);
  if (shape != Shape({rank, 2})) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", input, " has the shape ", shape.ToString(), ", expected ", Shape({rank, 2}).ToString()));
  }
  const Tensor* value = context->input_value(input);
  if (value == nullptr) return context->NeedsValueOf(input);
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> margins, IntegerValues(*value));
  for (int d = 0; d < rank; ++d) {
    if (margins[2 * d] < 0 || margins[2 * d + 1] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("input ", input, " is negative for dimension ", d));
    }
    blocks->before.push_back(margins[2 * d]);
    blocks->after.push_back(margins[2 * d + 1]);
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(PrepareContext* context, Blocks* blocks) {
  for (int64_t size : blocks->size) {
    if (size < 1 || __builtin_mul_overflow(blocks->product, size, &blocks->product)) {
      return absl::InvalidArgumentError(absl::StrCat("the block size is ", size, ", expected at least 1"));
    }
  }
  if (context->input_shape(0).rank() < 1 + blocks->rank()) {
    return absl::InvalidArgumentError(absl::StrCat("the input has the shape ", context->input_shape(0).ToString(),
                                                   ", expected a batch and ", blocks->rank(), " spatial dimensions"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Blocks> ReadBlocksND(PrepareContext* context) {
  Blocks blocks;
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_ASSIGN_OR_RETURN(blocks.size, IntegerVectorInput(context, 1));
  PF_RETURN_IF_ERROR(ReadMargins(context, 2, blocks.rank(), &blocks));
  PF_RETURN_IF_ERROR(CheckBlocks(context, &blocks));
  return blocks;
}

// Reads the parameters of the older ops: two spatial dimensions and one block size.
absl::StatusOr<Blocks> ReadSquareBlocks(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_ASSIGN_OR_RETURN(int64_t size, IntAttr(context->node(), "block_size"));
  Blocks blocks;
  blocks.size = {size, size};
  PF_RETURN_IF_ERROR(ReadMargins(context, 1, 2, &blocks));
  PF_RETURN_IF_ERROR(CheckBlocks(context, &blocks));
  return blocks;
}

// Returns the size of a tensor in bytes, or an error if it exceeds int64.
absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, DType dtype) {
  PF_ASSIGN_OR_RETURN(int64_t count, shape.CheckedNumElements());
  int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(SizeOf(dtype)), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", shape.ToString(), " fits no memory"));
  }
  return bytes;
}

// Pads into scratch memory, then moves the blocks to the batch.
absl::Status PrepareSpaceToBatchWith(PrepareContext* context, const Blocks& blocks) {
  const Shape& input = context->input_shape(0);
  const int rank = blocks.rank();
  Shape padded = input;
  Shape output = input;
  std::vector<int64_t> before(input.rank(), 0);
  int64_t batch;
  if (__builtin_mul_overflow(input.dim(0), blocks.product, &batch)) {
    return absl::InvalidArgumentError("the batch of the output exceeds int64");
  }
  output.set_dim(0, batch);
  for (int d = 0; d < rank; ++d) {
    int64_t size;
    if (__builtin_add_overflow(input.dim(1 + d), blocks.before[d], &size) ||
        __builtin_add_overflow(size, blocks.after[d], &size) || size % blocks.size[d] != 0) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", 1 + d, " of the input has ", input.dim(1 + d), " + ",
                                                     blocks.before[d], " + ", blocks.after[d],
                                                     " elements, expected a multiple of ", blocks.size[d]));
    }
    padded.set_dim(1 + d, size);
    output.set_dim(1 + d, size / blocks.size[d]);
    before[1 + d] = blocks.before[d];
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  int source = 0;
  if (padded != input && output.num_elements() > 0) {
    PF_ASSIGN_OR_RETURN(int64_t bytes, CheckedBytes(padded, context->input_type(0)));
    context->RequestScratch(bytes);
    copies->AddPadded(0, CopyList::kScratch, CopyList::kZero, input.dims(), before, padded.dims());
    source = CopyList::kScratch;
  }
  // From [batch, size_0, block_0, size_1, block_1, ..., rest] to [block_0, block_1, ..., batch, size_0, ..., rest].
  std::vector<int64_t> from = {input.dim(0)};
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) {
    from.push_back(output.dim(1 + d));
    from.push_back(blocks.size[d]);
    order.push_back(2 * d + 2);
  }
  from.push_back(ProductOfDims(input, 1 + rank, input.rank()));
  order.push_back(0);
  for (int d = 0; d < rank; ++d) order.push_back(2 * d + 1);
  order.push_back(2 * rank + 1);
  if (output.num_elements() > 0) copies->Add(source, 0, 0, 0, PermutedDims(from, order));
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

// Moves the batch to blocks in scratch memory, then crops.
absl::Status PrepareBatchToSpaceWith(PrepareContext* context, const Blocks& blocks) {
  const Shape& input = context->input_shape(0);
  const int rank = blocks.rank();
  if (input.dim(0) % blocks.product != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch is ", input.dim(0), ", expected a multiple of ", blocks.product));
  }
  Shape whole = input;
  whole.set_dim(0, input.dim(0) / blocks.product);
  Shape output = whole;
  for (int d = 0; d < rank; ++d) {
    int64_t size, cropped;
    if (__builtin_mul_overflow(input.dim(1 + d), blocks.size[d], &size) ||
        __builtin_sub_overflow(size, blocks.before[d], &cropped) ||
        __builtin_sub_overflow(cropped, blocks.after[d], &cropped) || cropped < 0) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", 1 + d, " has ", input.dim(1 + d), " x ",
                                                     blocks.size[d], " elements, and ", blocks.before[d], " + ",
                                                     blocks.after[d], " cannot be cropped"));
    }
    whole.set_dim(1 + d, size);
    output.set_dim(1 + d, cropped);
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  PF_ASSIGN_OR_RETURN(int64_t bytes, CheckedBytes(whole, context->input_type(0)));
  const bool crops = whole != output && output.num_elements() > 0;
  if (crops) context->RequestScratch(bytes);
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  // From [block_0, block_1, ..., batch, size_0, size_1, ..., rest] to [batch, size_0, block_0, size_1, ..., rest].
  std::vector<int64_t> from(blocks.size);
  std::vector<int> order = {rank};
  from.push_back(whole.dim(0));
  for (int d = 0; d < rank; ++d) {
    from.push_back(input.dim(1 + d));
    order.push_back(rank + 1 + d);
    order.push_back(d);
  }
  from.push_back(ProductOfDims(input, 1 + rank, input.rank()));
  order.push_back(2 * rank + 1);
  if (output.num_elements() > 0) copies->Add(0, 0, crops ? CopyList::kScratch : 0, 0, PermutedDims(from, order));
  if (crops) {
    const absl::InlinedVector<int64_t, 6> from_strides = RowMajorStrides(whole.dims());
    const absl::InlinedVector<int64_t, 6> to_strides = RowMajorStrides(output.dims());
    absl::InlinedVector<StridedCopy::Dim, 6> dims;
    int64_t offset = 0;
    for (int d = 0; d < output.rank(); ++d) {
      dims.push_back({output.dim(d), from_strides[d], to_strides[d]});
      if (d >= 1 && d <= rank) offset += blocks.before[d - 1] * from_strides[d];
    }
    copies->Add(CopyList::kScratch, offset, 0, 0, dims);
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareSpaceToBatchND(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(Blocks blocks, ReadBlocksND(context));
  return PrepareSpaceToBatchWith(context, blocks);
}

absl::Status PrepareBatchToSpaceND(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(Blocks blocks, ReadBlocksND(context));
  return PrepareBatchToSpaceWith(context, blocks);
}

absl::Status PrepareSpaceToBatch(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(Blocks blocks, ReadSquareBlocks(context));
  return PrepareSpaceToBatchWith(context, blocks);
}

absl::Status PrepareBatchToSpace(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(Blocks blocks, ReadSquareBlocks(context));
  return PrepareBatchToSpaceWith(context, blocks);
}

}  // namespace

DEFINE_KERNEL(SpaceToDepth) {
  return MovingKernel<PrepareSpaceToDepth>("the input with blocks of pixels rearranged into channels");
}
DEFINE_KERNEL(DepthToSpace) {
  return MovingKernel<PrepareDepthToSpace>("the input with channels rearranged into blocks of pixels");
}
DEFINE_KERNEL(SpaceToBatchND) {
  return MovingKernel<PrepareSpaceToBatchND>("the input with blocks of elements rearranged into the batch dimension");
}
DEFINE_KERNEL(BatchToSpaceND) {
  return MovingKernel<PrepareBatchToSpaceND>("the input with the batch dimension rearranged into blocks of elements");
}
DEFINE_KERNEL(SpaceToBatch) {
  return MovingKernel<PrepareSpaceToBatch>("the input with blocks of pixels rearranged into the batch dimension");
}
DEFINE_KERNEL(BatchToSpace) {
  return MovingKernel<PrepareBatchToSpace>("the input with the batch dimension rearranged into blocks of pixels");
}

}  // namespace permafrost

// Ops that pad a tensor: Pad, PadV2, MirrorPad.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/moving_kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct Paddings {
  std::vector<int64_t> before;
  Shape output;
};

// Reads the paddings from input 1, and sets the shape of the output.
absl::StatusOr<Paddings> ReadPaddings(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  if (context->input_shape(1) != Shape({input.rank(), 2})) {
    return absl::InvalidArgumentError(absl::StrCat("'paddings' has the shape ", context->input_shape(1).ToString(),
                                                   ", expected ", Shape({input.rank(), 2}).ToString()));
  }
  const Tensor* value = context->input_value(1);
  if (value == nullptr) return context->NeedsValueOf(1);
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> margins, IntegerValues(*value));
  Paddings paddings;
  for (int d = 0; d < input.rank(); ++d) {
    const int64_t before = margins[2 * d];
    const int64_t after = margins[2 * d + 1];
    int64_t size;
    if (before < 0 || after < 0 || __builtin_add_overflow(input.dim(d), before, &size) ||
        __builtin_add_overflow(size, after, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'paddings' is ", before, " and ", after, " for dimension ", d, " of ", input.dim(d)));
    }
    paddings.before.push_back(before);
    paddings.output.AddDim(size);
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, paddings.output));
  return paddings;
}

absl::Status PreparePadWith(PrepareContext* context, int border) {
  PF_ASSIGN_OR_RETURN(Paddings paddings, ReadPaddings(context));
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  if (paddings.output.num_elements() > 0) {
    copies->AddPadded(0, 0, border, context->input_shape(0).dims(), paddings.before, paddings.output.dims());
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PreparePad(PrepareContext* context) { return PreparePadWith(context, CopyList::kZero); }

absl::Status PreparePadV2(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t count, context->input_shape(2).CheckedNumElements());
  if (count != 1) {
    return absl::InvalidArgumentError(absl::StrCat("'constant_values' has ", count, " elements, expected 1"));
  }
  return PreparePadWith(context, 2);
}

// A part of one output dimension, and its source along the input dimension.
struct Part {
  int64_t to;
  int64_t size;
  int64_t from;
  int64_t step;
};

absl::Status PrepareMirrorPad(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::string mode, StringAttr(context->node(), "mode"));
  if (mode != "REFLECT" && mode != "SYMMETRIC") {
    return absl::InvalidArgumentError(absl::StrCat("mode is '", mode, "', expected 'REFLECT' or 'SYMMETRIC'"));
  }
  const int64_t edge = mode == "REFLECT" ? 1 : 0;  // REFLECT does not repeat the outermost element.
  PF_ASSIGN_OR_RETURN(Paddings paddings, ReadPaddings(context));
  const Shape& input = context->input_shape(0);
  const int rank = input.rank();
  std::vector<std::vector<Part>> parts(rank);
  int64_t combinations = 1;
  for (int d = 0; d < rank; ++d) {
    const int64_t size = input.dim(d);
    const int64_t before = paddings.before[d];
    const int64_t after = paddings.output.dim(d) - size - before;
    if (before > size - edge || after > size - edge) {
      return absl::InvalidArgumentError(absl::StrCat("'paddings' is ", before, " and ", after, " for dimension ", d,
                                                     ", expected at most ", size - edge, " with mode ", mode));
    }
    if (before > 0) parts[d].push_back({0, before, before - 1 + edge, -1});
    parts[d].push_back({before, size, 0, 1});
    if (after > 0) parts[d].push_back({before + size, after, size - 1 - edge, -1});
    combinations *= static_cast<int64_t>(parts[d].size());
    // Limits the number of dimensions padded on both sides to six; TensorFlow has kernels for five.
    if (combinations > 729) return absl::UnimplementedError("more than six padded dimensions");
  }
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  if (paddings.output.num_elements() == 0) combinations = 0;
  const absl::InlinedVector<int64_t, 6> from_strides = RowMajorStrides(input.dims());
  const absl::InlinedVector<int64_t, 6> to_strides = RowMajorStrides(paddings.output.dims());
  for (int64_t c = 0; c < combinations; ++c) {
    int64_t rest = c;
    int64_t from = 0;
    int64_t to = 0;
    absl::InlinedVector<StridedCopy::Dim, 6> dims;
    for (int d = 0; d < rank; ++d) {
      const Part& part = parts[d][rest % parts[d].size()];
      rest /= static_cast<int64_t>(parts[d].size());
      from += part.from * from_strides[d];
      to += part.to * to_strides[d];
      dims.push_back({part.size, part.step * from_strides[d], to_strides[d]});
    }
    copies->Add(0, from, 0, to, dims);
  }
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Pad) { return MovingKernel<PreparePad>("the input padded with zeros"); }

DEFINE_KERNEL(PadV2) { return MovingKernel<PreparePadV2>("the input padded with a constant"); }

DEFINE_KERNEL(MirrorPad) { return MovingKernel<PrepareMirrorPad>("the input padded with its mirror image"); }

}  // namespace permafrost

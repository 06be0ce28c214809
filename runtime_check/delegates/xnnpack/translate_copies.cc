// Translates nodes that only move elements to block copies.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/xnnpack/translate.h"

namespace permafrost {
namespace xnnpack {
namespace {

absl::Status No(absl::string_view reason) { return absl::UnimplementedError(reason); }

// Returns a copy of `count` rows of `size` floats.
BlockCopy Rows(size_t count, size_t size, size_t input_stride, size_t output_stride) {
  BlockCopy copy;
  copy.sizes[kMostBlockDims - 2] = count;
  copy.sizes[kMostBlockDims - 1] = size;
  copy.input_strides[kMostBlockDims - 2] = input_stride;
  copy.output_strides[kMostBlockDims - 2] = output_stride;
  copy.input_strides[kMostBlockDims - 1] = copy.output_strides[kMostBlockDims - 1] = 1;
  return copy;
}

absl::StatusOr<int> AxisOf(const std::vector<int64_t>& values, int rank) {
  const int64_t axis = values[0] < 0 ? values[0] + rank : values[0];
  if (axis < 0 || axis >= rank) return No("its axis does not exist");
  return static_cast<int>(axis);
}

}  // namespace

absl::StatusOr<Operation> TranslateJoin(const NodeView& view) {
  Operation operation;
  operation.kind = OperationKind::kCopy;
  const Shape& output = view.output_shape(0);
  const bool is_pack = view.node().op() == ops::kPack;
  const int count = is_pack ? view.num_inputs() : view.num_inputs() - 1;
  std::vector<int64_t> axis_value;
  if (is_pack) {
    PF_ASSIGN_OR_RETURN(const int64_t value, IntAttr(view.node(), "axis"));
    axis_value = {value};
  } else {
    PF_ASSIGN_OR_RETURN(axis_value, view.Integers(count, "its axis"));
  }
  PF_ASSIGN_OR_RETURN(const int axis, AxisOf(axis_value, output.rank()));
  const size_t rows = Product(output, 0, axis);
  const size_t row = Product(output, axis, output.rank());
  size_t offset = 0;
  for (int i = 0; i < count; ++i) {
    if (view.is_constant(i)) PF_RETURN_IF_ERROR(view.Weights(i, "an operand").status());
    const size_t size = Product(view.input_shape(i), 0, view.input_shape(i).rank()) / rows;
    BlockCopy copy = Rows(rows, size, size, row);
    copy.input = view.input(i);
    copy.output = view.output(0);
    copy.output_offset = offset;
    offset += size;
    operation.inputs.push_back(copy.input);
    operation.copies.push_back(copy);
  }
  return operation;
}

absl::StatusOr<Operation> TranslateSplit(const NodeView& view) {
  Operation operation;
  operation.kind = OperationKind::kCopy;
  const bool is_unpack = view.node().op() == ops::kUnpack;
  const bool is_split_v = view.node().op() == ops::kSplitV;
  const int value = view.node().op() == ops::kSplit ? 1 : 0;
  const Shape& input = view.input_shape(value);
  std::vector<int64_t> axis_value;
  if (is_unpack) {
    PF_ASSIGN_OR_RETURN(const int64_t attr, IntAttr(view.node(), "axis"));
    axis_value = {attr};
  } else {
    PF_ASSIGN_OR_RETURN(axis_value, view.Integers(is_split_v ? 2 : 0, "its axis"));
  }
  PF_ASSIGN_OR_RETURN(const int axis, AxisOf(axis_value, input.rank()));
  const size_t rows = Product(input, 0, axis);
  const size_t row = Product(input, axis, input.rank());
  size_t offset = 0;
  operation.inputs = {view.input(value)};
  for (int i = 0; i < view.num_outputs(); ++i) {
    const size_t size = Product(view.output_shape(i), 0, view.output_shape(i).rank()) / rows;
    BlockCopy copy = Rows(rows, size, row, size);
    copy.input = view.input(value);
    copy.output = view.output(i);
    copy.input_offset = offset;
    offset += size;
    operation.copies.push_back(copy);
  }
  return operation;
}

absl::StatusOr<Operation> TranslateSlice(const NodeView& view) {
  Operation operation;
  operation.kind = OperationKind::kCopy;
  const Shape& input = view.input_shape(0);
  const Shape& output = view.output_shape(0);
  if (input.rank() > kMostBlockDims) return No("it has a tensor of more than 6 dimensions");
  const bool is_strided = view.node().op() == ops::kStridedSlice;
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, view.Integers(1, "the start positions"));
  int64_t begin_mask = 0, shrink_mask = 0;
  std::vector<int64_t> strides(begin.size(), 1);
  if (is_strided) {
    PF_ASSIGN_OR_RETURN(begin_mask, IntAttr(view.node(), "begin_mask"));
    PF_ASSIGN_OR_RETURN(shrink_mask, IntAttr(view.node(), "shrink_axis_mask"));
    PF_ASSIGN_OR_RETURN(const int64_t ellipsis_mask, IntAttr(view.node(), "ellipsis_mask"));
    PF_ASSIGN_OR_RETURN(const int64_t new_axis_mask, IntAttr(view.node(), "new_axis_mask"));
    if (ellipsis_mask != 0 || new_axis_mask != 0) return No("it has an ellipsis or a new axis");
    PF_ASSIGN_OR_RETURN(strides, view.Integers(3, "its strides"));
  }
  BlockCopy copy;
  copy.input = view.input(0);
  copy.output = view.output(0);
  size_t input_stride = 1, output_stride = 1;
  int from = output.rank() - 1;
  for (int i = input.rank() - 1; i >= 0; --i) {
    const int to = kMostBlockDims - input.rank() + i;
    const bool is_named = i < static_cast<int>(begin.size());
    const bool is_shrunk = is_named && ((shrink_mask >> i) & 1) != 0;
    const int64_t size = is_shrunk ? 1 : output.dim(from--);
    const int64_t stride = is_named ? strides[i] : 1;
    if (stride != 1 && size > 1) return No("one of its strides is not 1");
    int64_t first = 0;
    if (is_named && (is_shrunk || ((begin_mask >> i) & 1) == 0)) first = begin[i];
    if (first < 0) first += input.dim(i);
    first = std::max<int64_t>(0, std::min(first, input.dim(i) - 1));
    if (is_named && stride < 0 && !is_shrunk && ((begin_mask >> i) & 1) != 0) first = input.dim(i) - 1;
    copy.sizes[to] = static_cast<size_t>(size);
    copy.input_strides[to] = input_stride;
    copy.output_strides[to] = output_stride;
    copy.input_offset += static_cast<size_t>(first) * input_stride;
    input_stride *= static_cast<size_t>(input.dim(i));
    output_stride *= static_cast<size_t>(size);
  }
  for (int i = 0; i < kMostBlockDims - input.rank(); ++i) copy.input_strides[i] = copy.output_strides[i] = 0;
  copy.input_strides[kMostBlockDims - 1] = copy.output_strides[kMostBlockDims - 1] = 1;
  operation.inputs = {copy.input};
  operation.copies = {copy};
  return operation;
}

}  // namespace xnnpack
}  // namespace permafrost

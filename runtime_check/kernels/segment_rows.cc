// Prepares segments, and allocates their results.
#include "runtime_check/kernels/segment_rows.h"

#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {

Shape WithFirst(int64_t first, const Shape& shape, int count) {
  Shape result({first});
  for (int d = count; d < shape.rank(); ++d) result.AddDim(shape.dim(d));
  return result;
}

absl::Status RequirePrefix(PrepareContext* context) {
  const Shape& data = context->input_shape(0);
  const Shape& numbers = context->input_shape(1);
  bool fits = numbers.rank() <= data.rank();
  for (int d = 0; fits && d < numbers.rank(); ++d) fits = numbers.dim(d) == data.dim(d);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input 0 has the shape ", data.ToString(), " and input 1 ",
                                                 numbers.ToString(), ", expected the start of that of input 0"));
}

absl::Status PrepareUnsortedSegments(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequirePrefix(context));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 0));
  PF_ASSIGN_OR_RETURN(const int64_t count, IntegerInput(context, 2));
  return SetCheckedShape(context, 0, WithFirst(count, context->input_shape(0), context->input_shape(1).rank()));
}

absl::Status PrepareSortedSegments(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_RETURN_IF_ERROR(RequirePrefix(context));
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

absl::Status AllocateSegments(ComputeContext* context, int64_t count) {
  const Shape output = WithFirst(count, context->input_shape(0), 1);
  PF_RETURN_IF_ERROR(output.CheckedNumElements().status());
  return context->AllocateOutput(0, output);
}

}  // namespace permafrost

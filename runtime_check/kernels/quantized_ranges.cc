// Implements the checks of the ranges of quantised tensors.
#include "runtime_check/kernels/quantized_ranges.h"

#include "absl/strings/str_cat.h"

namespace permafrost {

absl::Status RequireRangeInputs(PrepareContext* context, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    const Shape& shape = context->input_shape(i);
    if (shape.rank() > 1 || shape.num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is the end of a range and has the shape ",
                                                     shape.ToString(), ", expected a scalar"));
    }
  }
  return absl::OkStatus();
}

void SetRangeOutputShapes(PrepareContext* context, int first) {
  context->SetOutputShape(first, Shape());
  context->SetOutputShape(first + 1, Shape());
}

absl::Status CheckRange(Range range, absl::string_view name) {
  if (std::isfinite(range.min) && std::isfinite(range.max) && range.max > range.min) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'max_", name, "' must be larger than 'min_", name,
                                                 "', but the range is from ", range.min, " to ", range.max));
}

}  // namespace permafrost

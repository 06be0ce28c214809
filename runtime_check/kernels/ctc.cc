// CTCGreedyDecoder: the most likely class at each step, without blanks and repetitions.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 3));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  const Shape& inputs = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const int64_t blank, IntAttr(context->node(), "blank_index"));
  const int64_t batch = inputs.dim(1), classes = inputs.dim(2);
  if (batch < 1 || classes < 1 || classes > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("the inputs have the shape ", inputs.ToString(),
                                                   ", expected at least one sequence and one class"));
  }
  if (context->input_shape(1).dim(0) != batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", context->input_shape(1).dim(0), " lengths, expected ", batch));
  }
  if (blank < -classes || blank >= classes) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'blank_index' is ", blank, ", expected one of ", classes, " classes"));
  }
  context->OutputShapeDependsOnValues(0);
  context->OutputShapeDependsOnValues(1);
  context->SetOutputShape(2, Shape({2}));
  context->SetOutputShape(3, Shape({batch, 1}));
  return absl::OkStatus();
}

template <typename T>
absl::Status Decode(ComputeContext* context) {
  const Shape& shape = context->input_shape(0);
  const int64_t steps = shape.dim(0), batch = shape.dim(1), classes = shape.dim(2);
  PF_ASSIGN_OR_RETURN(const bool merges, BoolAttr(context->node(), "merge_repeated"));
  PF_ASSIGN_OR_RETURN(int64_t blank, IntAttr(context->node(), "blank_index"));
  if (blank < 0) blank += classes;
  const T* inputs = context->input<T>(0);
  const int32_t* lengths = context->input<int32_t>(1);
  T* probability = context->output<T>(3);
  std::vector<int64_t> places, values;
  int64_t longest = 0;
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > steps) {
      return absl::InvalidArgumentError(absl::StrCat("'sequence_length' has ", lengths[b], " at element ", b,
                                                     ", expected a value in [0, ", steps, "]"));
    }
    probability[b] = 0;
    int64_t last = -1, found = 0;
    for (int64_t t = 0; t < lengths[b] && !RunIsCancelled(); ++t) {
      const T* row = inputs + (t * batch + b) * classes;
      int64_t best = 0;
      for (int64_t c = 1; c < classes; ++c) {
        if (row[c] > row[best]) best = c;
      }
      probability[b] -= row[best];
      if (best != blank && !(merges && best == last)) {
        places.insert(places.end(), {b, found++});
        values.push_back(best);
      }
      last = best;
    }
    longest = std::max(longest, found);
  }
  const auto count = static_cast<int64_t>(values.size());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({count, 2})));
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape({count})));
  std::copy(places.begin(), places.end(), context->output<int64_t>(0));
  std::copy(values.begin(), values.end(), context->output<int64_t>(1));
  context->output<int64_t>(2)[0] = batch;
  context->output<int64_t>(2)[1] = longest;
  return absl::OkStatus();
}

absl::Status Compute(ComputeContext* context) {
  return context->input_type(0) == DType::kFloat ? Decode<float>(context) : Decode<double>(context);
}

}  // namespace

DEFINE_KERNEL(CTCGreedyDecoder) {
  return Kernel(
             "the class with the largest input at each step, without blanks and merged repetitions, as a sparse tensor")
      .Types<float, double>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost

// Non-maximum suppression: keeps the box with the highest score among overlapping boxes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/box_overlap.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// The sources of the parameters, which depend on the version of the op.
struct SuppressionState : KernelState {
  int64_t num_boxes = 0;
  float iou_threshold = 0;       // Value, if it is an attribute.
  int iou_threshold_input = -1;  // Input number, if it is an input.
  int score_threshold_input = -1;
  int sigma_input = -1;
  int scores_output = -1;
  int valid_output = -1;
  bool pads = false;
};

// A box that may still be selected. The first `compared` selected boxes may already have lowered its score.
struct Candidate {
  float score;
  int32_t box;
  int32_t compared;
};

// Returns true if `a` comes after `b`: by lower score, then by higher index.
bool ComesAfter(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.box > b.box);
}

absl::Status Prepare(PrepareContext* context, std::unique_ptr<SuppressionState> state) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  const Shape& boxes = context->input_shape(0);
  if (boxes.dim(1) != 4 || boxes.dim(0) != context->input_shape(1).dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("boxes and scores have the shapes ", boxes.ToString(), " and ",
                                                   context->input_shape(1).ToString(),
                                                   ", expected [n,4] and [n] of the same n"));
  }
  for (int i = 2; i < context->num_inputs(); ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 0));
  if (boxes.dim(0) > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", boxes.dim(0), " boxes, expected at most 2^31 - 1"));
  }
  state->num_boxes = boxes.dim(0);
  context->OutputShapeDependsOnValues(0);
  if (state->scores_output >= 0) context->OutputShapeDependsOnValues(state->scores_output);
  if (state->valid_output >= 0) context->SetOutputShape(state->valid_output, Shape());
  // Memory for the heap of candidates, the selected boxes and their corners.
  context->RequestScratch(static_cast<size_t>(state->num_boxes) *
                          (2 * sizeof(Candidate) + SelectedBoxes::kFloatsOfBox * sizeof(float)));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareV1(PrepareContext* context) {
  auto state = std::make_unique<SuppressionState>();
  PF_ASSIGN_OR_RETURN(state->iou_threshold, FloatAttr(context->node(), "iou_threshold"));
  return Prepare(context, std::move(state));
}

absl::Status PrepareV2(PrepareContext* context) {
  auto state = std::make_unique<SuppressionState>();
  state->iou_threshold_input = 3;
  return Prepare(context, std::move(state));
}

absl::Status PrepareV3(PrepareContext* context) {
  auto state = std::make_unique<SuppressionState>();
  state->iou_threshold_input = 3;
  state->score_threshold_input = 4;
  return Prepare(context, std::move(state));
}

absl::Status PrepareV4(PrepareContext* context) {
  auto state = std::make_unique<SuppressionState>();
  state->iou_threshold_input = 3;
  state->score_threshold_input = 4;
  state->valid_output = 1;
  PF_ASSIGN_OR_RETURN(state->pads, BoolAttr(context->node(), "pad_to_max_output_size"));
  return Prepare(context, std::move(state));
}

absl::Status PrepareV5(PrepareContext* context) {
  auto state = std::make_unique<SuppressionState>();
  state->iou_threshold_input = 3;
  state->score_threshold_input = 4;
  state->sigma_input = 5;
  state->scores_output = 1;
  state->valid_output = 2;
  PF_ASSIGN_OR_RETURN(state->pads, BoolAttr(context->node(), "pad_to_max_output_size"));
  return Prepare(context, std::move(state));
}

float ScalarInput(ComputeContext* context, int i, float otherwise) {
  return i < 0 ? otherwise : context->input<float>(i)[0];
}

absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<SuppressionState>();
  const float* boxes = context->input<float>(0);
  const float* scores = context->input<float>(1);
  const int32_t limit = context->input<int32_t>(2)[0];
  const float iou_threshold = ScalarInput(context, state.iou_threshold_input, state.iou_threshold);
  const float score_threshold = ScalarInput(context, state.score_threshold_input, std::numeric_limits<float>::lowest());
  const float sigma = ScalarInput(context, state.sigma_input, 0);
  if (limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat("max_output_size is ", limit, ", expected at least 0"));
  }
  if (!(iou_threshold >= 0 && iou_threshold <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("iou_threshold is ", iou_threshold, ", expected 0 to 1"));
  }
  if (!(sigma >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("soft_nms_sigma is ", sigma, ", expected at least 0"));
  }

  Candidate* heap = reinterpret_cast<Candidate*>(context->scratch());
  Candidate* selected = heap + state.num_boxes;
  Candidate* end = heap;
  SelectedBoxes corners(reinterpret_cast<float*>(selected + state.num_boxes), state.num_boxes);
  for (int32_t i = 0; i < state.num_boxes; ++i) {
    if (scores[i] > score_threshold) *end++ = Candidate{scores[i], i, 0};
  }
  std::make_heap(heap, end, ComesAfter);
  // Soft suppression (Bodla et al., 2017) lowers scores by exp(-overlap^2 / (2 sigma)) instead of dropping boxes.
  const bool is_soft = sigma > 0;
  const float decay = is_soft ? -0.5f / sigma : 0;
  int32_t num_selected = 0;
  while (num_selected < limit && end != heap && !RunIsCancelled()) {
    std::pop_heap(heap, end, ComesAfter);
    Candidate next = *--end;
    const float original = next.score;
    const float* box = boxes + 4 * next.box;
    // Boxes compared before are skipped.
    if (!is_soft && corners.AnyOverlapsAbove(box, next.compared, iou_threshold)) continue;
    // In reverse order, since the boxes selected last are the most likely to overlap.
    for (int32_t j = num_selected - 1; is_soft && j >= next.compared && next.score > score_threshold; --j) {
      const float overlap = BoxOverlap(box, boxes + 4 * selected[j].box);
      next.score *= std::exp(decay * overlap * overlap);
    }
    next.compared = num_selected;
    if (next.score == original) {
      selected[num_selected++] = next;
      corners.Add(box);
    } else if (next.score > score_threshold) {
      *end++ = next;
      std::push_heap(heap, end, ComesAfter);
    }
  }

  const int64_t size = state.pads ? limit : num_selected;
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({size})));
  int32_t* indices = context->output<int32_t>(0);
  for (int64_t i = 0; i < size; ++i) indices[i] = i < num_selected ? selected[i].box : 0;
  if (state.scores_output >= 0) {
    PF_RETURN_IF_ERROR(context->AllocateOutput(state.scores_output, Shape({size})));
    float* kept = context->output<float>(state.scores_output);
    for (int64_t i = 0; i < size; ++i) kept[i] = i < num_selected ? selected[i].score : 0;
  }
  if (state.valid_output >= 0) *context->output<int32_t>(state.valid_output) = num_selected;
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(NonMaxSuppression) {
  return Kernel(
             "the indices of the boxes [top, left, bottom, right] that no selected box with a higher score overlaps by "
             "more than a threshold")
      .Prepare(PrepareV1)
      .Compute(Compute);
}

DEFINE_KERNEL(NonMaxSuppressionV2) {
  return Kernel("NonMaxSuppression with the threshold as an input")
      .Types<float, Half>("T")
      .Types<float, Half>("T_threshold")
      .Prepare(PrepareWidened<PrepareV2>)
      .Compute(ComputeWidened<Compute>);
}

DEFINE_KERNEL(NonMaxSuppressionV3) {
  return Kernel("NonMaxSuppressionV2 for boxes whose score is above a threshold")
      .Types<float, Half>("T")
      .Types<float, Half>("T_threshold")
      .Prepare(PrepareWidened<PrepareV3>)
      .Compute(ComputeWidened<Compute>);
}

DEFINE_KERNEL(NonMaxSuppressionV4) {
  return Kernel("NonMaxSuppressionV3 with optional padding, and the number of selected boxes")
      .Types<float, Half>("T")
      .Types<float, Half>("T_threshold")
      .Prepare(PrepareWidened<PrepareV4>)
      .Compute(ComputeWidened<Compute>);
}

DEFINE_KERNEL(NonMaxSuppressionV5) {
  return Kernel(
             "NonMaxSuppressionV4 with the scores of the boxes, which overlaps scale by exp(-overlap^2 / (2 sigma)) if "
             "sigma is not 0")
      .Types<float, Half>("T")
      .Prepare(PrepareWidened<PrepareV5>)
      .Compute(ComputeWidened<Compute>);
}

}  // namespace permafrost

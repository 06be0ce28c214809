// TFLite_Detection_PostProcess: decodes the boxes of a single-shot detector and suppresses overlapping ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/box_overlap.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

struct DetectionState : public KernelState {
  int64_t boxes = 0, box_columns = 0, columns = 0;  // Columns of scores, with the background if there is one.
  int64_t classes = 0, background = 0;              // `background` is 1 if column 0 is.
  int64_t most_detections = 0, classes_per_detection = 0, detections_per_class = 0;
  float score_threshold = 0, overlap_threshold = 0;
  float scales[4] = {};  // Of y, x, height, width.
  bool by_class = false;
  // Offsets of scratch memory.
  int64_t decoded = 0, scores = 0, order = 0, is_active = 0, selected = 0, found = 0, found_scores = 0, merged = 0,
          class_order = 0;
};

absl::StatusOr<int64_t> PositiveAttr(const Node& node, absl::string_view name) {
  PF_ASSIGN_OR_RETURN(const int64_t value, IntAttr(node, name));
  if (value > 0 && value <= std::numeric_limits<int32_t>::max()) return value;
  return absl::InvalidArgumentError(absl::StrCat("attr '", name, "' is ", value, ", expected 1 to 2^31 - 1"));
}

absl::Status Prepare(PrepareContext* context) {
  const Node& node = context->node();
  auto state = std::make_unique<DetectionState>();
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 3));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 3));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 2));
  const Shape &boxes = context->input_shape(0), &scores = context->input_shape(1), &anchors = context->input_shape(2);
  state->boxes = boxes.dim(1);
  state->box_columns = boxes.dim(2);
  state->columns = scores.dim(2);
  PF_ASSIGN_OR_RETURN(state->classes, PositiveAttr(node, "num_classes"));
  state->background = state->columns - state->classes;
  if (boxes.dim(0) != 1 || scores.dim(0) != 1 || scores.dim(1) != state->boxes || anchors.dim(0) != state->boxes ||
      state->box_columns < 4 || anchors.dim(1) != 4 || state->boxes > std::numeric_limits<int32_t>::max() ||
      state->background < 0 || state->background > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "boxes, scores and anchors have the shapes ", boxes.ToString(), ", ", scores.ToString(), " and ",
        anchors.ToString(), ", expected [1,n,4], [1,n,", state->classes, "] or one column more, and [n,4]"));
  }
  PF_ASSIGN_OR_RETURN(state->most_detections, PositiveAttr(node, "max_detections"));
  PF_ASSIGN_OR_RETURN(state->classes_per_detection, PositiveAttr(node, "max_classes_per_detection"));
  PF_ASSIGN_OR_RETURN(state->detections_per_class, PositiveAttr(node, "detections_per_class"));
  PF_ASSIGN_OR_RETURN(state->by_class, BoolAttr(node, "use_regular_nms"));
  PF_ASSIGN_OR_RETURN(state->score_threshold, FloatAttr(node, "nms_score_threshold"));
  PF_ASSIGN_OR_RETURN(state->overlap_threshold, FloatAttr(node, "nms_iou_threshold"));
  constexpr const char* kScales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
  for (int i = 0; i < 4; ++i) {
    PF_ASSIGN_OR_RETURN(state->scales[i], FloatAttr(node, kScales[i]));
    if (!(state->scales[i] > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("attr '", kScales[i], "' is ", state->scales[i], ", expected a positive number"));
    }
  }
  if (!(state->overlap_threshold >= 0 && state->overlap_threshold <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'nms_iou_threshold' is ", state->overlap_threshold, ", expected 0 to 1"));
  }
  const int64_t rows = state->most_detections * state->classes_per_detection;  // Below 2^62.
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({1, rows, 4})));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, Shape({1, rows})));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 2, Shape({1, rows})));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 3, Shape({1})));
  ScratchParts parts;
  const int64_t n = state->boxes;
  PF_ASSIGN_OR_RETURN(state->decoded, parts.Add(4 * n));
  PF_ASSIGN_OR_RETURN(state->scores, parts.Add(n));
  PF_ASSIGN_OR_RETURN(state->order, parts.Add(n, sizeof(int32_t)));
  PF_ASSIGN_OR_RETURN(state->is_active, parts.Add(n, 1));
  PF_ASSIGN_OR_RETURN(state->selected, parts.Add(n, sizeof(int32_t)));
  if (state->by_class) {
    // The detections of earlier classes and of one more, at most one for each box.
    const int64_t most = n + std::min(state->most_detections, n * state->classes);
    PF_ASSIGN_OR_RETURN(state->found, parts.Add(most, sizeof(int64_t)));
    PF_ASSIGN_OR_RETURN(state->found_scores, parts.Add(most));
    PF_ASSIGN_OR_RETURN(state->merged, parts.Add(most, sizeof(int64_t)));
  } else {
    PF_ASSIGN_OR_RETURN(state->class_order, parts.Add(state->classes, sizeof(int32_t)));
  }
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Boxes are centre and size relative to anchors; the results are corners: top, left, bottom, right.
void Decode(const DetectionState& state, const float* boxes, const float* anchors, float* corners) {
  for (int64_t i = 0; i < state.boxes; ++i) {
    const float *box = boxes + i * state.box_columns, *anchor = anchors + 4 * i;
    for (int axis = 0; axis < 2; ++axis) {
      const double size = anchor[2 + axis];
      const auto centre = static_cast<float>(static_cast<double>(box[axis]) / state.scales[axis] * size + anchor[axis]);
      const auto half =
          static_cast<float>(0.5 * std::exp(static_cast<double>(box[2 + axis]) / state.scales[2 + axis]) * size);
      corners[4 * i + axis] = centre - half;
      corners[4 * i + 2 + axis] = centre + half;
    }
  }
}

// Selects at most `most` boxes, best score first, that no better selected box overlaps. Returns their number.
int64_t Suppress(const DetectionState& state, const float* corners, const float* scores, int64_t most, int32_t* order,
                 char* is_active, int32_t* selected) {
  int64_t kept = 0;
  for (int64_t i = 0; i < state.boxes; ++i) {
    if (scores[i] >= state.score_threshold) order[kept++] = static_cast<int32_t>(i);
  }
  std::sort(order, order + kept,
            [scores](int32_t a, int32_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
  std::fill_n(is_active, kept, 1);
  int64_t count = 0;
  for (int64_t i = 0; i < kept && count < most && !RunIsCancelled(); ++i) {
    if (!is_active[i]) continue;
    selected[count++] = order[i];
    for (int64_t j = i + 1; j < kept; ++j) {
      if (is_active[j] && BoxOverlap(corners + 4 * order[i], corners + 4 * order[j]) > state.overlap_threshold) {
        is_active[j] = 0;
      }
    }
  }
  return count;
}

absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<DetectionState>();
  const float* scores = context->input<float>(1);
  char* scratch = context->scratch();
  float* corners = ScratchAt(context, state.decoded);
  float* row_scores = ScratchAt(context, state.scores);
  auto* order = reinterpret_cast<int32_t*>(scratch + state.order);
  auto* selected = reinterpret_cast<int32_t*>(scratch + state.selected);
  char* is_active = scratch + state.is_active;
  float *out_boxes = context->output<float>(0), *out_classes = context->output<float>(1),
        *out_scores = context->output<float>(2);
  const int64_t rows = context->output_shape(1).dim(1);
  std::fill_n(out_boxes, 4 * rows, 0.0f);
  std::fill_n(out_classes, rows, 0.0f);
  std::fill_n(out_scores, rows, 0.0f);
  Decode(state, context->input<float>(0), context->input<float>(2), corners);
  // The order of NaN is undefined.
  for (int64_t i = 0; i < state.boxes * state.columns; ++i) {
    if (std::isnan(scores[i])) return absl::InvalidArgumentError("a score is NaN");
  }
  const auto put = [&](int64_t row, int64_t box, int64_t class_index, float score) {
    std::copy_n(corners + 4 * box, 4, out_boxes + 4 * row);
    out_classes[row] = static_cast<float>(class_index);
    out_scores[row] = score;
  };
  int64_t count = 0;
  if (!state.by_class) {
    // Suppresses by the best class of each box.
    for (int64_t i = 0; i < state.boxes; ++i) {
      const float* of_box = scores + i * state.columns + state.background;
      row_scores[i] = *std::max_element(of_box, of_box + state.classes);
    }
    count = Suppress(state, corners, row_scores, state.most_detections, order, is_active, selected);
    auto* class_order = reinterpret_cast<int32_t*>(scratch + state.class_order);
    const int64_t listed = std::min(state.classes_per_detection, state.classes);
    for (int64_t i = 0; i < count; ++i) {
      const float* of_box = scores + selected[i] * state.columns + state.background;
      std::iota(class_order, class_order + state.classes, 0);
      std::partial_sort(class_order, class_order + listed, class_order + state.classes, [of_box](int32_t a, int32_t b) {
        return of_box[a] > of_box[b] || (of_box[a] == of_box[b] && a < b);
      });
      for (int64_t k = 0; k < listed; ++k) {
        put(i * state.classes_per_detection + k, selected[i], class_order[k], of_box[class_order[k]]);
      }
    }
  } else {
    // Suppresses in each class, and keeps the best of all classes so far.
    auto* found = reinterpret_cast<int64_t*>(scratch + state.found);  // Box * classes + class.
    float* found_scores = ScratchAt(context, state.found_scores);
    auto* merged = reinterpret_cast<int64_t*>(scratch + state.merged);  // Positions in `found`, then what is there.
    const int64_t most = std::min(state.detections_per_class, state.most_detections);
    for (int64_t c = 0; c < state.classes; ++c) {
      for (int64_t i = 0; i < state.boxes; ++i) row_scores[i] = scores[i * state.columns + c + state.background];
      const int64_t added = Suppress(state, corners, row_scores, most, order, is_active, selected);
      for (int64_t i = 0; i < added; ++i) {
        found[count + i] = selected[i] * state.classes + c;
        found_scores[count + i] = row_scores[selected[i]];
      }
      const int64_t total = count + added;
      count = std::min(total, state.most_detections);
      std::iota(merged, merged + total, 0);
      std::sort(merged, merged + total, [found_scores](int64_t a, int64_t b) {
        return found_scores[a] > found_scores[b] || (found_scores[a] == found_scores[b] && a < b);
      });
      for (int64_t i = 0; i < count; ++i) merged[i] = found[merged[i]];
      std::copy_n(merged, count, found);
      std::sort(found_scores, found_scores + total, std::greater<float>());
    }
    for (int64_t i = 0; i < count; ++i) put(i, found[i] / state.classes, found[i] % state.classes, found_scores[i]);
  }
  *context->output<float>(3) = static_cast<float>(count);
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(TFLite_Detection_PostProcess) {
  return Kernel(
             "boxes decoded from anchors, of which none overlaps a better one; with classes, scores and their number")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost

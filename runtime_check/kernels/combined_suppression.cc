// CombinedNonMaxSuppression: non-maximum suppression per class of each image, and selection of the best results.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/box_overlap.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

struct Detection {
  float score;
  int32_t box, of_class;
};

// Orders by descending score, then by ascending class, then by ascending box.
bool ComesBefore(const Detection& a, const Detection& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.of_class != b.of_class ? a.of_class < b.of_class : a.box < b.box;
}

// Inputs: (boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold).
absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 3));
  for (int i = 2; i < 6; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 0));
  const Shape &boxes = context->input_shape(0), &scores = context->input_shape(1);
  const bool fits = boxes.dim(0) == scores.dim(0) && boxes.dim(1) == scores.dim(1) &&
                    (boxes.dim(2) == 1 || boxes.dim(2) == scores.dim(2)) && boxes.dim(3) == 4;
  if (!fits || boxes.dim(1) > std::numeric_limits<int32_t>::max() ||
      scores.dim(2) > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("boxes and scores have the shapes ", boxes.ToString(), " and ", scores.ToString(),
                     ", expected [images,boxes,1 or classes,4] and [images,boxes,classes] of numbers below 2^31"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t per_class, IntegerInput(context, 2));
  PF_ASSIGN_OR_RETURN(const int64_t total, IntegerInput(context, 3));
  if (per_class <= 0 || total <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", per_class, " boxes for each class and ", total, " in all, expected numbers above 0"));
  }
  PF_ASSIGN_OR_RETURN(const bool pads_per_class, BoolAttr(context->node(), "pad_per_class"));
  // Both factors are below 2^31.
  const int64_t size = pads_per_class ? std::min(total, per_class * scores.dim(2)) : total;
  const int64_t images = boxes.dim(0);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({images, size, 4})));
  context->SetOutputShape(1, Shape({images, size}));
  context->SetOutputShape(2, Shape({images, size}));
  context->SetOutputShape(3, Shape({images}));
  return absl::OkStatus();
}

absl::Status Compute(ComputeContext* context) {
  const Shape &shape = context->input_shape(0), &out = context->output_shape(0);
  const int64_t num_boxes = shape.dim(1), groups = shape.dim(2), classes = context->input_shape(1).dim(2);
  const int64_t per_class = context->input<int32_t>(2)[0], size = out.dim(1);
  const float iou_threshold = context->input<float>(4)[0], score_threshold = context->input<float>(5)[0];
  if (!(iou_threshold >= 0 && iou_threshold <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("iou_threshold is ", iou_threshold, ", expected 0 to 1"));
  }
  PF_ASSIGN_OR_RETURN(const bool clips, BoolAttr(context->node(), "clip_boxes"));
  if (shape.dim(0) == 0) return absl::OkStatus();
  // Memory for the candidates and the corners of a class in each thread, and for the selected boxes of all classes.
  const int64_t most_of_class = std::min(per_class, num_boxes), most_selected = most_of_class * classes;
  const int64_t workers = std::min<int64_t>(context->threads().num_threads(), classes);
  constexpr int64_t kBytesOfCorners = SelectedBoxes::kFloatsOfBox * static_cast<int64_t>(sizeof(float));
  PF_ASSIGN_OR_RETURN(const Reservation reservation, Reservation::Take(&context->budget(),
                                                                       (workers * num_boxes + 2 * most_selected) *
                                                                               static_cast<int64_t>(sizeof(Detection)) +
                                                                           workers * most_of_class * kBytesOfCorners,
                                                                       "the candidates of non-maximum suppression"));
  std::vector<Detection> selected;
  std::vector<std::vector<Detection>> of_class(static_cast<size_t>(classes)),
      candidates_of(static_cast<size_t>(workers));
  std::vector<std::vector<float>> corners_of(static_cast<size_t>(workers));
  for (int64_t image = 0; image < shape.dim(0); ++image) {
    const float* boxes = context->input<float>(0) + image * num_boxes * groups * 4;
    const float* scores = context->input<float>(1) + image * num_boxes * classes;
    const auto box_of = [&](const Detection& detection) {
      return boxes + (detection.box * groups + (groups == 1 ? 0 : detection.of_class)) * 4;
    };
    selected.clear();
    ForEachPiece(context->threads(), classes, [&](int worker, int64_t piece) {
      std::vector<Detection>& candidates = candidates_of[static_cast<size_t>(worker)];
      std::vector<Detection>& kept = of_class[static_cast<size_t>(piece)];
      std::vector<float>& memory = corners_of[static_cast<size_t>(worker)];
      memory.resize(static_cast<size_t>(most_of_class * SelectedBoxes::kFloatsOfBox));
      SelectedBoxes corners(memory.data(), most_of_class);
      const auto c = static_cast<int32_t>(piece);
      candidates.clear();
      kept.clear();
      for (int32_t box = 0; box < num_boxes; ++box) {
        const float score = scores[box * classes + c];
        if (score > score_threshold) candidates.push_back({score, box, c});
      }
      std::sort(candidates.begin(), candidates.end(), ComesBefore);
      for (const Detection& candidate : candidates) {
        if (static_cast<int64_t>(kept.size()) == per_class || RunIsCancelled()) break;
        if (corners.AnyOverlapsAbove(box_of(candidate), 0, iou_threshold)) continue;
        kept.push_back(candidate);
        corners.Add(box_of(candidate));
      }
    });
    for (const std::vector<Detection>& kept : of_class) selected.insert(selected.end(), kept.begin(), kept.end());
    std::sort(selected.begin(), selected.end(), ComesBefore);
    const int64_t count = std::min(size, static_cast<int64_t>(selected.size()));
    float* out_boxes = context->output<float>(0) + image * size * 4;
    float* out_scores = context->output<float>(1) + image * size;
    float* out_classes = context->output<float>(2) + image * size;
    std::fill_n(out_boxes, size * 4, 0.0f);
    std::fill_n(out_scores, size, 0.0f);
    std::fill_n(out_classes, size, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const Detection& detection = selected[static_cast<size_t>(i)];
      for (int64_t e = 0; e < 4; ++e) {
        const float edge = box_of(detection)[e];
        out_boxes[4 * i + e] = clips ? std::min(std::max(edge, 0.0f), 1.0f) : edge;
      }
      out_scores[i] = detection.score;
      out_classes[i] = static_cast<float>(detection.of_class);
    }
    context->output<int32_t>(3)[image] = static_cast<int32_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(CombinedNonMaxSuppression) {
  return Kernel(
             "for each image, the boxes with the highest scores over all classes, after non-maximum suppression within "
             "each class")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost

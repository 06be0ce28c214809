// Writes custom operators with kernels in runtimes of TensorFlow Lite.
#include "io/formats/tflite/export_custom.h"

#include "absl/strings/str_cat.h"
#include "flatbuffers/flexbuffers.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// TFLite_Detection_PostProcess, as TensorFlow 1's object detection export puts it into graphs, too.
absl::StatusOr<std::string> DetectionOptions(const Node& node) {
  flexbuffers::Builder builder;
  absl::Status status;
  const size_t start = builder.StartMap();
  for (const char* key : {"max_detections", "max_classes_per_detection", "detections_per_class", "num_classes"}) {
    const bool is_optional = absl::string_view(key) == "detections_per_class";
    if (is_optional && !node.HasAttr(key)) continue;
    const absl::StatusOr<int64_t> value = IntAttr(node, key);
    status.Update(value.status());
    builder.Int(key, value.value_or(0));
  }
  for (const char* key : {"nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale"}) {
    // The export writes scales that are whole numbers as integers.
    const AttrValue* attr = node.FindAttr(key);
    const absl::StatusOr<int64_t> whole = attr == nullptr ? absl::NotFoundError(key) : attr->AsInt();
    const absl::StatusOr<float> value = whole.ok() ? static_cast<float>(*whole) : FloatAttr(node, key);
    status.Update(value.status());
    builder.Float(key, value.value_or(0));
  }
  builder.Bool("use_regular_nms", node.HasAttr("use_regular_nms") && BoolAttr(node, "use_regular_nms").value_or(false));
  builder.EndMap(start);
  builder.Finish();
  PF_RETURN_IF_ERROR(status);
  const std::vector<uint8_t>& options = builder.GetBuffer();
  return std::string(options.begin(), options.end());
}

}  // namespace

bool IsCustomOperator(Op op) {
  static const Op kDetection = Op::Named("TFLite_Detection_PostProcess");
  return op == kDetection;
}

absl::StatusOr<std::string> CustomOptions(const Node& node) { return DetectionOptions(node); }

}  // namespace permafrost

// Reads the scales of codes from the nodes that compute with them.
#include "runtime_check/delegates/external/tensor_scales.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/graph.h"

namespace permafrost {
namespace {

class Finder {
 public:
  explicit Finder(const Partition& partition) : partition_(partition) {
    found_.resize(partition.tensors.size());
    differs_.assign(partition.tensors.size(), false);
  }

  std::vector<TensorScales> Find() {
    for (const DelegateNode& node : partition_.nodes) {
      const absl::string_view op = node.node->op().name();
      if (op == "UniformQuantize") {
        SetFromUniform(node, node.outputs);
      } else if (op == "UniformDequantize") {
        SetFromUniform(node, node.inputs);
      } else if (absl::StartsWith(op, "_Integer")) {
        SetFromAttributes(node, op);
      }
    }
    for (size_t i = 0; i < found_.size(); ++i) {
      if (differs_[i]) found_[i] = TensorScales();
    }
    return std::move(found_);
  }

 private:
  void SetFromUniform(const DelegateNode& node, const std::vector<int>& ends) {
    if (ends.empty()) return;
    const auto scales = ReadUniformScales(*node.node);
    if (scales.ok()) Set(ends[0], {scales->scales, scales->zero_points, scales->axis});
  }

  void SetFromAttributes(const DelegateNode& node, absl::string_view op) {
    const Node& attrs = *node.node;
    if (const auto scale = FloatAttr(attrs, "output_scale"); scale.ok() && !node.outputs.empty()) {
      Set(node.outputs[0], {{*scale}, {static_cast<int32_t>(IntAttr(attrs, "output_zero_point").value_or(0))}});
    }
    const std::vector<float> scales = FloatListAttr(attrs, "input_scales").value_or(std::vector<float>());
    const std::vector<int64_t> points = IntListAttr(attrs, "input_zero_points").value_or(std::vector<int64_t>());
    for (size_t i = 0; i < std::min({scales.size(), points.size(), node.inputs.size()}); ++i) {
      Set(node.inputs[i], {{scales[i]}, {static_cast<int32_t>(points[i])}});
    }
    const auto filter_scales = FloatListAttr(attrs, "filter_scales");
    if (!filter_scales.ok() || filter_scales->empty() || scales.empty() || node.inputs.size() < 2) return;
    const auto zero_point = static_cast<int32_t>(IntAttr(attrs, "filter_zero_point").value_or(0));
    const size_t count = filter_scales->size();
    Set(node.inputs[1], {*filter_scales, std::vector<int32_t>(count, zero_point), count == 1 ? -1 : AxisOf(attrs, op)});
    const size_t bias = op == "_IntegerConv2DBackpropInput" ? 3 : 2;
    if (node.inputs.size() <= bias) return;
    TensorScales of_bias;
    for (const float scale : *filter_scales) of_bias.scales.push_back(scale * scales[0]);
    of_bias.zero_points.assign(count, 0);
    of_bias.axis = count == 1 ? -1 : 0;
    Set(node.inputs[bias], std::move(of_bias));
  }

  // The axis of output channels of a filter.
  static int32_t AxisOf(const Node& node, absl::string_view op) {
    if (op == "_IntegerMatMul") return BoolAttr(node, "transpose_b").value_or(false) ? 0 : 1;
    const std::string format = StringAttr(node, "filter_format").value_or("");
    if (format == "OHWI") return 0;
    return format == "HWIO" ? 3 : 2;  // HWOI, and depthwise filters.
  }

  void Set(int tensor, TensorScales scales) {
    TensorScales& known = found_[static_cast<size_t>(tensor)];
    if (known.scales.empty()) {
      known = std::move(scales);
    } else if (known.scales != scales.scales || known.zero_points != scales.zero_points || known.axis != scales.axis) {
      differs_[static_cast<size_t>(tensor)] = true;
    }
  }

  const Partition& partition_;
  std::vector<TensorScales> found_;
  std::vector<bool> differs_;  // By tensor: two nodes compute with different scales.
};

}  // namespace

std::vector<TensorScales> FindTensorScales(const Partition& partition) { return Finder(partition).Find(); }

}  // namespace permafrost

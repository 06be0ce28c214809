// Finds convolutions of the parts of an image, whose results are concatenated, and makes one grouped convolution of
// them.
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/patterns.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {
namespace {

bool IsSameAxis(const WindowAxis& a, const WindowAxis& b) {
  return a.input == b.input && a.taps == b.taps && a.stride == b.stride && a.dilation == b.dilation &&
         a.pad_before == b.pad_before && a.output == b.output;
}

bool IsSameWindow(const WindowGeometry& a, const WindowGeometry& b) {
  return a.batch == b.batch && a.input_channels == b.input_channels && a.output_channels == b.output_channels &&
         IsSameAxis(a.y, b.y) && IsSameAxis(a.x, b.x) && a.groups == b.groups;
}

// The channels of an image that a convolution reads.
struct Part {
  int image = -1;
  int64_t first = 0;
};

class GroupFinder {
 public:
  explicit GroupFinder(PartitionEditor* editor) : editor_(*editor) {}

  void Run() {
    for (int i = 0; i < editor_.num_nodes(); ++i) {
      if (editor_.IsRemoved(i) || editor_.parsed(i).kind != NodeKind::kConcat) continue;
      std::string near_miss;
      if (!Fuse(i, &near_miss) && !near_miss.empty()) editor_.parsed(i).near_miss = near_miss;
    }
  }

 private:
  // Returns the part of an image, cut from its last dimension, that the tensor is a copy of.
  std::optional<Part> PartOf(int tensor) {
    const int producer = editor_.Producer(tensor);
    if (producer < 0 || editor_.parsed(producer).kind != NodeKind::kView) return std::nullopt;
    const ParsedNode& view = editor_.parsed(producer);
    const std::vector<int>& outputs = editor_.node(producer).outputs;
    const int image = editor_.node(producer).inputs[static_cast<size_t>(view.data)];
    const Shape &whole = editor_.tensor(image).shape, &shape = editor_.tensor(tensor).shape;
    if (whole.rank() != 4 || shape.rank() != 4) return std::nullopt;
    for (int d = 0; d < 3; ++d) {
      if (whole.dim(d) != shape.dim(d)) return std::nullopt;
    }
    for (size_t i = 0; i < outputs.size() && i < view.views.size(); ++i) {
      if (outputs[i] != tensor) continue;
      const StridedView& part = view.views[i];
      if (part.strides != RowMajorStrides(whole)) return std::nullopt;
      if (part.offset < 0 || part.offset + shape.dim(3) > whole.dim(3)) return std::nullopt;
      return Part{image, part.offset};
    }
    return std::nullopt;
  }

  // Replaces the convolutions before the Concat. Returns false, with a reason if it is nearly the pattern, for others.
  bool Fuse(int concat, std::string* near_miss) {
    const ParsedNode& joined = editor_.parsed(concat);
    const int output = editor_.node(concat).outputs[0];
    const int count = joined.num_values;
    if (count < 2 || joined.axis != 3 || editor_.tensor(output).shape.rank() != 4) return false;
    std::vector<int> convolutions;
    int image = -1;
    for (int g = 0; g < count; ++g) {
      const int value = editor_.node(concat).inputs[static_cast<size_t>(joined.first_value + g)];
      const int node = editor_.Producer(value);
      if (node < 0 || editor_.parsed(node).kind != NodeKind::kConvolution) return false;
      const ParsedNode& parsed = editor_.parsed(node);
      const std::optional<Part> part = PartOf(editor_.node(node).inputs[static_cast<size_t>(parsed.data)]);
      if (!part.has_value() || (g > 0 && part->image != image)) return false;
      image = part->image;
      // From here on it is a convolution of parts.
      const auto miss = [&](absl::string_view reason) {
        *near_miss = absl::StrCat("no grouped convolution: ", reason);
        return false;
      };
      if (!editor_.HasOneReader(value)) return miss("the result of a part has another reader");
      if (parsed.window.groups != 1 || parsed.has_bias || parsed.activation != PostActivation::kNone) {
        return miss("a part has groups, a bias or an activation of its own");
      }
      if (g > 0 && !IsSameWindow(parsed.window, editor_.parsed(convolutions[0]).window)) {
        return miss("the parts have different sizes");
      }
      if (part->first != g * parsed.window.input_channels) return miss("the parts are not in order");
      convolutions.push_back(node);
    }
    ParsedNode grouped = editor_.parsed(convolutions[0]);
    const int64_t inputs = grouped.window.input_channels;
    if (editor_.tensor(image).shape.dim(3) != count * inputs) return false;
    grouped.window.groups = count;
    grouped.window.input_channels *= count;
    grouped.window.output_channels *= count;
    if (const absl::Status is_fast = CheckFast(grouped); !is_fast.ok()) {
      *near_miss = absl::StrCat("no grouped convolution: ", is_fast.message());
      return false;
    }
    const int weights = JoinWeights(convolutions);
    grouped.data = 0;
    grouped.weights = 1;
    std::vector<int> removed = convolutions;
    removed.push_back(concat);
    editor_.Replace(removed, concat, {image, weights}, output, std::move(grouped));
    return true;
  }

  // Adds the filters [H, W, inputs of a group, outputs of all groups].
  int JoinWeights(const std::vector<int>& convolutions) {
    const auto weights_of = [&](int node) -> const DelegateTensor& {
      return editor_.tensor(editor_.node(node).inputs[static_cast<size_t>(editor_.parsed(node).weights)]);
    };
    const Shape& shape = weights_of(convolutions[0]).shape;
    const auto outputs = static_cast<size_t>(shape.dim(3)), groups = convolutions.size();
    const auto rows = static_cast<size_t>(shape.dim(0) * shape.dim(1) * shape.dim(2));
    std::vector<float> joined(rows * outputs * groups);
    std::string name = "groups";
    for (size_t g = 0; g < groups; ++g) {
      const DelegateTensor& given = weights_of(convolutions[g]);
      const std::vector<float> values = FloatsOf(*given.constant);
      for (size_t r = 0; r < rows; ++r) {
        std::memcpy(joined.data() + (r * groups + g) * outputs, values.data() + r * outputs, outputs * sizeof(float));
      }
      // The name identifies the value, so it needs those of all parts.
      name = name.empty() || given.value_name.empty() ? "" : absl::StrCat(name, " ", given.value_name);
    }
    const Shape whole = {shape.dim(0), shape.dim(1), shape.dim(2), static_cast<int64_t>(outputs * groups)};
    return editor_.AddConstant(Tensor::FromVector<float>(whole, std::move(joined)), std::move(name));
  }

  PartitionEditor& editor_;
};

}  // namespace

void FuseGroups(PartitionEditor* editor) { GroupFinder(editor).Run(); }

}  // namespace onednn
}  // namespace permafrost

// Reads and writes the attributes of windows.
#include "transforms/rewrites/image_windows.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "transforms/rewrites/absorption.h"

namespace permafrost {
namespace {

// TensorFlow's kernels count pixels in 32 bits.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

// Reads attr `key`: 4 positive values, 1 for batch and channels.
absl::StatusOr<std::vector<int64_t>> PerDimension(const Node& node, const char* key, int channel_dim) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> values, IntListAttr(node, key));
  const bool fits = values.size() == 4 && values[0] == 1 && values[channel_dim] == 1 &&
                    std::all_of(values.begin(), values.end(), [](int64_t v) { return v >= 1 && v <= kLargest; });
  if (fits) return values;
  return Blocked(node, absl::StrCat("has an attr '", key, "' that is not one positive value for each dimension"));
}

bool HasInSchema(const Node& node, absl::string_view key) {
  const OpSchema* schema = FindSchema(node.op());
  return schema != nullptr && schema->FindAttr(key) != nullptr;
}

int64_t SizeAt(const Shape& image, int dim) {
  return image.has_rank() && image.rank() == 4 ? image.dim(dim) : kUnknownDim;
}

}  // namespace

bool WindowForm::SamePadding(int64_t size, Margin* margin) const {
  if (stride != 1 && size == kUnknownDim) return false;
  const int64_t extent = (kernel - 1) * dilation + 1;
  int64_t total = extent - 1;  // With stride 1, for any size.
  if (stride != 1) {
    const int64_t positions = size / stride + (size % stride != 0);
    total = positions == 0 ? 0 : std::max<int64_t>(0, extent - (size - (positions - 1) * stride));
  }
  *margin = {total / 2, total - total / 2};
  return true;
}

absl::StatusOr<WindowForms> WindowFormsOf(const Node& node, int64_t kernel_y, int64_t kernel_x) {
  WindowForms forms;
  if (HasInSchema(node, "data_format")) {
    PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
    if (format != "NHWC" && format != "NCHW") return Blocked(node, absl::StrCat("has the data_format '", format, "'"));
    if (format == "NCHW") forms.channel_dim = 1;
  }
  forms.y.dim = forms.is_nchw() ? 2 : 1;
  forms.x.dim = forms.is_nchw() ? 3 : 2;
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, PerDimension(node, "strides", forms.channel_dim));
  std::vector<int64_t> dilations(4, 1);
  if (HasInSchema(node, "dilations")) {
    PF_ASSIGN_OR_RETURN(dilations, PerDimension(node, "dilations", forms.channel_dim));
  }
  PF_ASSIGN_OR_RETURN(forms.padding, StringAttr(node, "padding"));
  std::vector<int64_t> paddings(8, 0);
  if (forms.padding == "EXPLICIT") {
    PF_ASSIGN_OR_RETURN(paddings, IntListAttr(node, "explicit_paddings"));
    const bool fits = paddings.size() == 8 &&
                      std::all_of(paddings.begin(), paddings.end(), [](int64_t v) { return v >= 0 && v <= kLargest; });
    if (!fits) return Blocked(node, "has an attr 'explicit_paddings' that is not two counts for each dimension");
  } else if (forms.padding != "SAME" && forms.padding != "VALID") {
    return Blocked(node, absl::StrCat("has the padding '", forms.padding, "'"));
  }
  const auto axis = [&](int dim, int64_t kernel) {
    return WindowForm{dim, kernel, strides[dim], dilations[dim], {paddings[2 * dim], paddings[2 * dim + 1]}};
  };
  if (kernel_y < 1 || kernel_y > kLargest || kernel_x < 1 || kernel_x > kLargest) {
    return Blocked(node, absl::StrCat("has a window of ", kernel_y, " by ", kernel_x));
  }
  forms.y = axis(forms.y.dim, kernel_y);
  forms.x = axis(forms.x.dim, kernel_x);
  return forms;
}

std::string PaddingFor(const WindowForms& forms, Margin y, Margin x, const Shape& image) {
  if (y.is_zero() && x.is_zero()) return "VALID";
  Margin same_y, same_x;
  const bool is_same = forms.y.SamePadding(SizeAt(image, forms.y.dim), &same_y) &&
                       forms.x.SamePadding(SizeAt(image, forms.x.dim), &same_x) && same_y == y && same_x == x;
  return is_same ? "SAME" : "EXPLICIT";
}

void SetPadding(Node* node, const WindowForms& forms, Margin y, Margin x, const Shape& image) {
  const std::string padding = PaddingFor(forms, y, x, image);
  node->SetAttr("padding", AttrValue::String(padding));
  if (padding == "EXPLICIT") {
    std::vector<int64_t> values(8, 0);
    values[2 * forms.y.dim] = y.before;
    values[2 * forms.y.dim + 1] = y.after;
    values[2 * forms.x.dim] = x.before;
    values[2 * forms.x.dim + 1] = x.after;
    node->SetAttr("explicit_paddings", AttrValue::IntList(values));
  } else {
    node->RemoveAttr("explicit_paddings");
  }
}

Shape KnownShape(TensorRef ref, const ShapeMap* shapes) {
  if (const Node* constant = ConstantBehind(ref); constant != nullptr) {
    DType dtype;
    Shape shape;
    const AttrValue* value = constant->FindAttr("value");
    if (value != nullptr && value->TensorTypeAndShape(&dtype, &shape).ok()) return shape;
  }
  return shapes == nullptr ? Shape::UnknownRank() : shapes->Of(ref);
}

absl::StatusOr<std::vector<Margin>> MarginsAt(const Node& node, int index, int rows) {
  const Node* constant = index < node.num_data_inputs() ? ConstantBehind(node.input(index)) : nullptr;
  if (constant == nullptr)
    return BlockedByVariable(node, index, absl::StrCat("has an input ", index, " that is not constant"));
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
  const bool is_integer = value.dtype() == DType::kInt32 || value.dtype() == DType::kInt64;
  if (!is_integer || value.shape() != Shape({rows, 2})) {
    return Blocked(node, absl::StrCat("has an input ", index, " of type ", DTypeName(value.dtype()), " and shape ",
                                      value.shape().ToString(), ", expected ", rows, " pairs of integers"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerValues(value));
  std::vector<Margin> margins;
  for (int i = 0; i < rows; ++i) {
    const Margin margin = {values[2 * i], values[2 * i + 1]};
    for (const int64_t side : {margin.before, margin.after}) {
      if (side < 0 || side > kLargest) {
        return Blocked(node, absl::StrCat("has the value ", side, " in input ", index, ", expected 0 to ", kLargest));
      }
    }
    margins.push_back(margin);
  }
  return margins;
}

}  // namespace permafrost

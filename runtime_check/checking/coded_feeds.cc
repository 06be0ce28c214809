// Quantises floats with the range that the graph has for the input.
#include "runtime_check/checking/coded_feeds.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/channel_map.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"

namespace permafrost {
namespace {

constexpr int kLargestCode = 255;

struct CodeRange {
  float min = 0;
  float max = 0;
};

// Returns the inputs of `reader` that hold the minimum and the maximum of its input `index`. Ops on codes have their
// tensors first (a concatenation has its axis before them), then the range of each. Empty for other ops.
std::optional<std::pair<int, int>> RangeInputs(const Node& reader, int index) {
  const int count = reader.num_data_inputs();
  if (reader.op() == ops::kQuantizedConcat) {
    const int parts = (count - 1) / 3;
    return std::make_pair(index + parts, index + 2 * parts);
  }
  if (reader.op() != ops::kDequantize && !absl::StartsWith(reader.op().name(), "Quantized")) return std::nullopt;
  if (count == 3) return std::make_pair(1, 2);
  if (count == 4) return std::make_pair(2, 3);
  if (count == 6) return std::make_pair(2 + 2 * index, 3 + 2 * index);
  return std::nullopt;
}

std::optional<float> ScalarBehind(TensorRef ref) {
  const Node* constant = ConstantBehind(ref);
  if (constant == nullptr) return std::nullopt;
  const absl::StatusOr<Tensor> value = ConstValue(*constant);
  if (!value.ok() || value->dtype() != DType::kFloat || value->num_elements() != 1) return std::nullopt;
  return value->elements<float>()[0];
}

std::optional<CodeRange> RangeOf(const Node& placeholder) {
  for (const Use& use : placeholder.uses()) {
    const int count = use.consumer->num_data_inputs();
    const auto inputs = RangeInputs(*use.consumer, static_cast<int>(use.index));
    if (!inputs.has_value() || std::max(inputs->first, inputs->second) >= count) continue;
    const std::optional<float> min = ScalarBehind(use.consumer->input(inputs->first));
    const std::optional<float> max = ScalarBehind(use.consumer->input(inputs->second));
    if (min.has_value() && max.has_value() && *min < *max) return CodeRange{*min, *max};
  }
  return std::nullopt;
}

DType TypeOf(const Endpoint& input) {
  const bool is_placeholder = input.node != nullptr && input.node->op() == ops::kPlaceholder;
  return is_placeholder ? TypeAttr(*input.node, "dtype").value_or(DType::kInvalid) : DType::kInvalid;
}

bool IsMappable(DType type) {
  return type == DType::kFloat || type == DType::kUint8 || type == DType::kInt8 || type == DType::kInt32;
}

}  // namespace

bool HasOtherMeaning(const Endpoint& before, const Endpoint& after) {
  const DType old_type = TypeOf(before), new_type = TypeOf(after);
  if (!IsMappable(old_type) || (new_type != DType::kFloat && new_type != DType::kUint8)) return false;
  return old_type != new_type || !(InputMapOf(*before.node) == InputMapOf(*after.node));
}

absl::StatusOr<MatchedFeed> MatchFeed(const Endpoint& before, const Endpoint& after, const Tensor& feed) {
  if (!HasOtherMeaning(before, after)) {
    PF_ASSIGN_OR_RETURN(Tensor coded, CodedFeed(after, feed));
    return MatchedFeed{feed, std::move(coded)};
  }
  const ChannelMap map = Compose(Inverse(InputMapOf(*before.node)), InputMapOf(*after.node));
  const DType type = TypeOf(after);
  PF_ASSIGN_OR_RETURN(Tensor mapped, MapChannels(map, feed, type));
  if (type != DType::kUint8 || feed.dtype() != DType::kFloat) return MatchedFeed{feed, std::move(mapped)};
  PF_ASSIGN_OR_RETURN(Tensor represented, MapChannels(Inverse(map), mapped, DType::kFloat));
  return MatchedFeed{std::move(represented), std::move(mapped)};
}

absl::StatusOr<Tensor> CodedFeed(const Endpoint& input, Tensor feed) {
  if (feed.dtype() != DType::kFloat || input.node == nullptr || input.node->op() != ops::kPlaceholder) return feed;
  PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(*input.node, "dtype"));
  if (type != DType::kQUint8) return feed;
  const std::optional<CodeRange> range = RangeOf(*input.node);
  if (!range.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("input '", input.text, "' takes quint8, and no reader says for which range"));
  }
  const double scale = kLargestCode / (static_cast<double>(range->max) - range->min);
  const double first = std::round(range->min * scale);
  char* codes = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor coded, Tensor::Allocate(DType::kQUint8, feed.shape(), &codes));
  const UnalignedSpan<float> values = feed.elements<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double code = std::round(values[i] * scale) - first;
    codes[i] = static_cast<char>(static_cast<uint8_t>(code > 0 ? std::min<double>(code, kLargestCode) : 0));
  }
  return coded;
}

}  // namespace permafrost

// Composes, inverts and applies maps of channels.
#include "graph/analysis/channel_map.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr char kScaleAttr[] = "_input_scale";
constexpr char kOffsetAttr[] = "_input_offset";
constexpr char kReversedAttr[] = "_input_channels_reversed";
constexpr char kDimAttr[] = "_input_channel_dim";

// Returns one number if all are equal.
std::vector<double> Shortest(std::vector<double> values) {
  const bool is_uniform = std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  if (is_uniform) values.resize(1);
  return values;
}

std::string NumbersText(const std::vector<double>& values) {
  const std::string list = absl::StrJoin(values, ", ");
  return values.size() == 1 ? list : absl::StrCat("(", list, ")");
}

std::vector<float> AsFloats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

std::vector<double> ReadNumbers(const Node& node, const char* key, double otherwise) {
  const AttrValue* value = node.FindAttr(key);
  const absl::StatusOr<std::vector<float>> numbers = value == nullptr ? absl::NotFoundError("") : value->AsFloatList();
  if (!numbers.ok() || numbers->empty()) return {otherwise};
  return {numbers->begin(), numbers->end()};
}

template <typename From, typename To>
void Fill(const ChannelMap& map, const Tensor& image, To* out) {
  const auto values = image.elements<From>();
  const Shape& shape = image.shape();
  int64_t inner = 1;
  for (int i = map.channel_dim + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
  const int64_t channels = shape.rank() == 4 ? shape.dim(map.channel_dim) : 1;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t channel = at / inner % channels;
    const int64_t source = map.is_reversed ? at + (channels - 1 - 2 * channel) * inner : at;
    const auto c = static_cast<size_t>(channel);
    const double value = map.ScaleOf(c) * static_cast<double>(values[static_cast<size_t>(source)]) + map.OffsetOf(c);
    if constexpr (std::is_integral_v<To>) {
      // A NaN becomes 0.
      out[i] = static_cast<To>(value > 0 ? std::min(std::nearbyint(value), 255.0) : 0);
    } else {
      out[i] = static_cast<To>(value);
    }
  }
}

}  // namespace

bool ChannelMap::IsIdentity() const {
  const auto is = [](const std::vector<double>& values, double wanted) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == wanted; });
  };
  return !is_reversed && is(scale, 1) && is(offset, 0);
}

bool ChannelMap::IsInvertible() const {
  const auto is_finite = [](double v) { return std::isfinite(v); };
  return std::all_of(scale.begin(), scale.end(),
                     [&](double v) { return is_finite(v) && v != 0 && is_finite(1 / v); }) &&
         std::all_of(offset.begin(), offset.end(), is_finite);
}

std::string ChannelMap::ToString() const {
  const std::vector<double> factors = Shortest(scale), terms = Shortest(offset);
  std::string text = "v";
  if (factors.size() > 1 || factors[0] != 1) absl::StrAppend(&text, " * ", NumbersText(factors));
  if (terms.size() > 1 || terms[0] != 0) absl::StrAppend(&text, " + ", NumbersText(terms));
  return is_reversed ? absl::StrCat(text, ", of the channels in reverse order") : text;
}

ChannelMap Compose(const ChannelMap& first, const ChannelMap& second) {
  const size_t channels = std::max(first.num_channels(), second.num_channels());
  ChannelMap map;
  map.scale.resize(channels);
  map.offset.resize(channels);
  map.is_reversed = first.is_reversed != second.is_reversed;
  map.channel_dim = second.channel_dim;
  for (size_t c = 0; c < channels; ++c) {
    const size_t source = second.is_reversed ? channels - 1 - c : c;
    map.scale[c] = second.ScaleOf(c) * first.ScaleOf(source);
    map.offset[c] = second.ScaleOf(c) * first.OffsetOf(source) + second.OffsetOf(c);
  }
  return map;
}

ChannelMap Inverse(const ChannelMap& map) {
  const size_t channels = map.num_channels();
  ChannelMap inverse;
  inverse.scale.resize(channels);
  inverse.offset.resize(channels);
  inverse.is_reversed = map.is_reversed;
  inverse.channel_dim = map.channel_dim;
  for (size_t c = 0; c < channels; ++c) {
    const size_t source = map.is_reversed ? channels - 1 - c : c;
    inverse.scale[c] = 1 / map.ScaleOf(source);
    inverse.offset[c] = -map.OffsetOf(source) / map.ScaleOf(source);
  }
  return inverse;
}

absl::StatusOr<Tensor> MapChannels(const ChannelMap& map, const Tensor& image, DType dtype) {
  const Shape& shape = image.shape();
  const auto channels = static_cast<int64_t>(map.num_channels());
  const bool needs_channels = channels > 1 || map.is_reversed;
  if (needs_channels && (shape.rank() != 4 || (channels > 1 && shape.dim(map.channel_dim) != channels))) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an input of shape ", shape.ToString(), ", expected an image of ", channels, " channels"));
  }
  if (dtype != DType::kFloat && dtype != DType::kUint8) {
    return absl::InvalidArgumentError(absl::StrCat("an image cannot be mapped to ", DTypeName(dtype)));
  }
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(dtype, shape, &out));
  const bool is_known = DispatchOn<float, uint8_t, int8_t, int32_t>(image.dtype(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    if (dtype == DType::kFloat) {
      Fill<From>(map, image, reinterpret_cast<float*>(out));
    } else {
      Fill<From>(map, image, reinterpret_cast<uint8_t*>(out));
    }
  });
  if (is_known) return result;
  return absl::InvalidArgumentError(absl::StrCat("an image of ", DTypeName(image.dtype()), " cannot be mapped"));
}

void SetInputMap(Node* placeholder, const ChannelMap& map) {
  if (map.IsIdentity()) {
    for (const char* key : {kScaleAttr, kOffsetAttr, kReversedAttr, kDimAttr}) placeholder->RemoveAttr(key);
    return;
  }
  placeholder->SetAttr(kScaleAttr, AttrValue::FloatList(AsFloats(map.scale)));
  placeholder->SetAttr(kOffsetAttr, AttrValue::FloatList(AsFloats(map.offset)));
  placeholder->SetAttr(kReversedAttr, AttrValue::Bool(map.is_reversed));
  placeholder->SetAttr(kDimAttr, AttrValue::Int(map.channel_dim));
}

ChannelMap InputMapOf(const Node& placeholder) {
  ChannelMap map;
  map.scale = ReadNumbers(placeholder, kScaleAttr, 1);
  map.offset = ReadNumbers(placeholder, kOffsetAttr, 0);
  if (const AttrValue* reversed = placeholder.FindAttr(kReversedAttr); reversed != nullptr) {
    map.is_reversed = reversed->AsBool().value_or(false);
  }
  if (const AttrValue* dim = placeholder.FindAttr(kDimAttr); dim != nullptr) {
    map.channel_dim = dim->AsInt().value_or(3) == 1 ? 1 : 3;
  }
  const size_t channels = map.num_channels();
  const bool fits = (map.scale.size() == 1 || map.scale.size() == channels) &&
                    (map.offset.size() == 1 || map.offset.size() == channels) && map.IsInvertible();
  return fits ? map : ChannelMap();
}

}  // namespace permafrost

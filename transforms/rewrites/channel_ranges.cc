// Parses and writes ranges of channels.
#include "transforms/rewrites/channel_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/matching/matcher.h"
#include "transforms/rewrites/channel_scaling.h"

namespace permafrost {
namespace {

constexpr char kKeyword[] = "@channels ";

bool Decode(absl::string_view text, std::vector<float>* numbers) {
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes) || bytes.size() % sizeof(float) != 0) return false;
  numbers->resize(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(numbers->data(), bytes.data(), bytes.size());
  return std::all_of(numbers->begin(), numbers->end(), [](float number) { return std::isfinite(number); });
}

std::string Encode(const std::vector<float>& numbers) {
  return absl::Base64Escape(
      absl::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)));
}

}  // namespace

absl::StatusOr<ChannelRanges> ParseChannelRanges(absl::string_view text) {
  ChannelRanges ranges;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, kKeyword)) continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    ChannelRange range;
    const bool is_valid = fields.size() == 3 && Decode(fields[1], &range.low) && Decode(fields[2], &range.high) &&
                          range.low.size() == range.high.size();
    if (!is_valid) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " of the calibration, of '", line.substr(0, 60),
                                                     "', is malformed, expected '", kKeyword, "TENSOR LOWS HIGHS'"));
    }
    ranges[std::string(fields[0])] = std::move(range);
  }
  if (ranges.empty())
    return absl::InvalidArgumentError(absl::StrCat("the calibration has no line '", kKeyword, "...'"));
  return ranges;
}

std::string ChannelRangeLine(absl::string_view tensor, const ChannelRange& range) {
  if (tensor.empty() || tensor.find_first_of(" \t\r\n") != absl::string_view::npos) return "";
  return absl::StrCat(kKeyword, tensor, " ", Encode(range.low), " ", Encode(range.high), "\n");
}

std::vector<TensorRef> TensorsWithChannelRanges(const Graph& graph) {
  std::vector<TensorRef> tensors;
  absl::flat_hash_set<TensorRef> seen;
  for (const Node* node : graph.Nodes()) {
    if (TypeAttr(*node, "T").value_or(DType::kInvalid) != DType::kFloat) continue;
    const bool is_product = IsConvolution(node->op()) || node->op() == ops::kBatchMatMulV2;
    if (!is_product && node->op() != ops::kRelu) continue;
    const int data = is_product ? DataInput(node->op()) : 0;
    if (node->num_data_inputs() <= std::max(data, is_product ? kWeightsInput : 0)) continue;
    if (is_product && ConstantBehind(node->input(kWeightsInput)) == nullptr) continue;
    if (ConstantBehind(node->input(data)) != nullptr) continue;
    if (seen.insert(node->input(data)).second) tensors.push_back(node->input(data));
  }
  return tensors;
}

}  // namespace permafrost

// Reads and changes data formats.
#include "transforms/rewrites/layout_ops.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

struct Row {
  ops::OpId op;
  LayoutOperands operands;
};
constexpr Row kRows[] = {
    {ops::kConv2D, {}},
    {ops::kDepthwiseConv2dNative, {}},
    {ops::kConv2DBackpropInput, {2, 0}},
    {ops::kMaxPool, {}},
    {ops::kAvgPool, {}},
    {ops::kFusedBatchNorm, {}},
    {ops::kFusedBatchNormV2, {}},
    {ops::kFusedBatchNormV3, {}},
    {ops::kBiasAdd, {}},
    {ops::kDepthToSpace, {}},
    {ops::kSpaceToDepth, {}},
};

// Attributes with a number, or a pair of numbers, for each dimension.
constexpr absl::string_view kNumbers[] = {"strides", "dilations", "ksize"};
constexpr absl::string_view kPairs = "explicit_paddings";
constexpr size_t kRank = 4;

// Returns the list; empty if the node has none.
absl::StatusOr<std::vector<int64_t>> ListOf(const Node& node, absl::string_view key, size_t size) {
  if (!node.HasAttr(key)) return std::vector<int64_t>();
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> list, IntListAttr(node, key));
  if (list.empty() || list.size() == size) return list;
  return absl::InvalidArgumentError(absl::StrCat("attr '", key, "' has ", list.size(), " numbers, expected ", size));
}

}  // namespace

const LayoutOperands* FindLayoutOperands(Op op) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return op == row.op; });
  return found == std::end(kRows) ? nullptr : &found->operands;
}

absl::StatusOr<std::string> FormatOf(const Node& node) {
  PF_ASSIGN_OR_RETURN(std::string format, StringAttr(node, "data_format"));
  if (format == kChannelsLast || format == kChannelsFirst) return format;
  return absl::InvalidArgumentError(absl::StrCat("attr 'data_format' is '", format, "', expected NHWC or NCHW"));
}

absl::Status CanSetFormat(const Node& node) {
  for (const absl::string_view key : kNumbers) PF_RETURN_IF_ERROR(ListOf(node, key, kRank).status());
  return ListOf(node, kPairs, 2 * kRank).status();
}

absl::Status SetFormat(Node* node, absl::string_view format, const Permutation& order) {
  PF_RETURN_IF_ERROR(CanSetFormat(*node));
  const auto change = [&](absl::string_view key, size_t each) -> absl::Status {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> old, ListOf(*node, key, each * kRank));
    if (old.empty()) return absl::OkStatus();
    std::vector<int64_t> changed;
    for (const int32_t dim : order) {
      for (size_t i = 0; i < each; ++i) changed.push_back(old[static_cast<size_t>(dim) * each + i]);
    }
    node->SetAttr(key, AttrValue::IntList(std::move(changed)));
    return absl::OkStatus();
  };
  for (const absl::string_view key : kNumbers) PF_RETURN_IF_ERROR(change(key, 1));
  PF_RETURN_IF_ERROR(change(kPairs, 2));
  node->SetAttr("data_format", AttrValue::String(std::string(format)));
  return absl::OkStatus();
}

}  // namespace permafrost

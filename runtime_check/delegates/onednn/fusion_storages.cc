// The first stages of fusion: parsing of nodes, and assignment of tensors to storages.
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/fusion_stages.h"
#include "runtime_check/delegates/onednn/layout_assignment.h"
#include "runtime_check/delegates/onednn/partition_editor.h"
#include "runtime_check/delegates/onednn/patterns.h"
#include "runtime_check/delegates/onednn/split_convolution.h"

namespace permafrost {
namespace onednn {

absl::StatusOr<ParsedPartition> ParsePartition(const Partition& partition, const PrecisionPlan& plan) {
  ParsedPartition parsed;
  parsed.given = &partition;
  for (const DelegateNode& node : partition.nodes) {
    PF_ASSIGN_OR_RETURN(parsed.nodes.emplace_back(), ParseNode(partition, node));
  }
  auto edited = std::make_shared<Partition>(partition);
  AssignLayouts(edited.get(), &parsed.nodes);
  PartitionEditor editor(edited.get(), &parsed.nodes);
  FuseGroups(&editor);
  AbsorbViews(&editor);
  FuseNormalizations(&editor);
  FuseAttention(&editor);
  editor.Finish();
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    Precision precision = plan.Of(edited->nodes[i].node->name());
    if (precision == Precision::kBf16x3 && !IsSplittable(parsed.nodes[i])) precision = Precision::kF32;
    parsed.precisions.push_back(precision);
  }
  parsed.partition = std::move(edited);
  return parsed;
}

int Storages::Add(int64_t elements) {
  storage.push_back(static_cast<int>(storage.size()));
  bytes.push_back(elements * static_cast<int64_t>(sizeof(float)));
  is_output.push_back(false);
  return storage.back();
}

Storages FindStorages(const ParsedPartition& parsed) {
  const Partition& partition = *parsed.partition;
  Storages result;
  result.partition = parsed.partition.get();
  result.storage.resize(partition.tensors.size());
  std::iota(result.storage.begin(), result.storage.end(), 0);
  for (const DelegateTensor& tensor : partition.tensors) {
    result.bytes.push_back(tensor.shape.num_elements() * static_cast<int64_t>(SizeOf(tensor.dtype)));
  }
  result.is_copied.assign(parsed.nodes.size(), false);
  result.is_output.resize(partition.tensors.size(), false);
  for (const int output : partition.outputs) result.is_output[output] = true;
  std::vector<bool> is_input(partition.tensors.size(), false);
  for (const int input : partition.inputs) is_input[input] = true;
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    if (parsed.nodes[i].kind != NodeKind::kAlias) continue;
    const int output = parsed.Source(i).outputs[0];
    const int source = result.Input(i, 0);
    // The caller provides the memory of both, so they cannot share a storage.
    const bool has_two_homes = result.is_output[output] && (is_input[source] || result.is_output[source]);
    if (has_two_homes || parsed.Input(i, 0).constant.has_value()) {
      result.is_copied[i] = true;
      continue;
    }
    result.storage[output] = source;
    if (result.is_output[output]) result.is_output[source] = true;
  }
  return result;
}

}  // namespace onednn
}  // namespace permafrost

// Edits of a partition that replace several nodes by one, before the stages of fusion.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PARTITION_EDITOR_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PARTITION_EDITOR_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/node_kinds.h"

namespace permafrost {
namespace onednn {

// Keeps producers and readers of tensors up to date. Nodes keep their numbers until Finish.
class PartitionEditor {
 public:
  // `parsed`: by node. Both must outlive the editor.
  PartitionEditor(Partition* partition, std::vector<ParsedNode>* parsed);

  int num_nodes() const { return static_cast<int>(parsed_.size()); }
  bool IsRemoved(int node) const { return is_removed_[node]; }
  ParsedNode& parsed(int node) { return parsed_[node]; }
  const DelegateNode& node(int node) const { return partition_.nodes[node]; }
  const DelegateTensor& tensor(int tensor) const { return partition_.tensors[tensor]; }
  bool IsConstant(int tensor) const { return partition_.tensors[tensor].constant.has_value(); }
  // Returns -1 for inputs of the partition and for constants.
  int Producer(int tensor) const { return producers_[tensor]; }
  // Returns the nodes that read the tensor, once for each input.
  const std::vector<int>& Readers(int tensor) const { return readers_[tensor]; }
  bool IsOutput(int tensor) const { return is_output_[tensor]; }
  // Returns true if the tensor has one reader inside the partition and none outside.
  bool HasOneReader(int tensor) const { return !is_output_[tensor] && readers_[tensor].size() == 1; }

  // Adds a constant, and returns its number. `name`: DelegateTensor::value_name.
  int AddConstant(Tensor value, std::string name);
  // Makes `last` read `inputs`, write `output` and compute `parsed`, and removes the other `nodes`.
  void Replace(absl::Span<const int> nodes, int last, std::vector<int> inputs, int output, ParsedNode parsed);
  // Replaces one input of a node.
  void SetInput(int node, int input, int tensor);
  // Removes the nodes whose outputs have no readers, and then the removed nodes from the partition.
  void Finish();

 private:
  void Detach(int node);

  Partition& partition_;
  std::vector<ParsedNode>& parsed_;
  std::vector<bool> is_removed_, is_output_;
  std::vector<int> producers_;
  std::vector<std::vector<int>> readers_;
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PARTITION_EDITOR_H_

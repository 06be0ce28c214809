// Tracks producers and readers while nodes are replaced.
#include "runtime_check/delegates/onednn/partition_editor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace permafrost {
namespace onednn {

PartitionEditor::PartitionEditor(Partition* partition, std::vector<ParsedNode>* parsed)
    : partition_(*partition),
      parsed_(*parsed),
      is_removed_(parsed->size(), false),
      is_output_(partition->tensors.size(), false),
      producers_(partition->tensors.size(), -1),
      readers_(partition->tensors.size()) {
  for (const int output : partition->outputs) is_output_[output] = true;
  for (int i = 0; i < num_nodes(); ++i) {
    for (const int input : node(i).inputs) readers_[input].push_back(i);
    for (const int output : node(i).outputs) producers_[output] = i;
  }
}

void PartitionEditor::Detach(int node) {
  for (const int input : partition_.nodes[node].inputs) {
    std::vector<int>& readers = readers_[input];
    const auto found = std::find(readers.begin(), readers.end(), node);
    if (found != readers.end()) readers.erase(found);
  }
}

int PartitionEditor::AddConstant(Tensor value, std::string name) {
  DelegateTensor tensor;
  tensor.dtype = value.dtype();
  tensor.shape = value.shape();
  tensor.constant = std::move(value);
  tensor.value_name = std::move(name);
  partition_.tensors.push_back(std::move(tensor));
  is_output_.push_back(false);
  producers_.push_back(-1);
  readers_.emplace_back();
  return static_cast<int>(partition_.tensors.size()) - 1;
}

void PartitionEditor::Replace(absl::Span<const int> nodes, int last, std::vector<int> inputs, int output,
                              ParsedNode parsed) {
  for (const int removed : nodes) {
    if (removed == last) continue;
    Detach(removed);
    is_removed_[removed] = true;
  }
  Detach(last);
  for (const int input : inputs) readers_[input].push_back(last);
  producers_[output] = last;
  partition_.nodes[last].inputs = std::move(inputs);
  partition_.nodes[last].outputs = {output};
  parsed_[last] = std::move(parsed);
}

void PartitionEditor::SetInput(int node, int input, int tensor) {
  int& place = partition_.nodes[node].inputs[input];
  std::vector<int>& before = readers_[place];
  before.erase(std::find(before.begin(), before.end(), node));
  readers_[tensor].push_back(node);
  place = tensor;
}

void PartitionEditor::Finish() {
  for (int i = num_nodes() - 1; i >= 0; --i) {
    if (is_removed_[i]) continue;
    const std::vector<int>& outputs = node(i).outputs;
    if (std::any_of(outputs.begin(), outputs.end(),
                    [this](int output) { return is_output_[output] || !readers_[output].empty(); })) {
      continue;
    }
    Detach(i);
    is_removed_[i] = true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < parsed_.size(); ++i) {
    if (is_removed_[i]) continue;
    if (kept != i) {
      partition_.nodes[kept] = std::move(partition_.nodes[i]);
      parsed_[kept] = std::move(parsed_[i]);
    }
    ++kept;
  }
  partition_.nodes.resize(kept);
  parsed_.resize(kept);
}

}  // namespace onednn
}  // namespace permafrost

// Operators that are carried from file to file as they are: nodes of an op "TFLite:<name>".
//
// The attribute `model` of such a node is a TensorFlow Lite model of one operator: its code, options and the
// descriptions of its tensors, without their data. Tensor i is data input i of the node; the outputs of the node
// follow; the rest (states, intermediates) belongs to the operator. Constants are ordinary Const nodes: views of the
// file in the layout of the file, so operands that are packed or sparse are vectors of bytes.
//
// Kernels from libraries (docs/writing_a_custom_op.md) read two more attributes, which the writer ignores:
// `custom_options`, the bytes of that field, and `operands`, the position of each data input among the file's operands.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_CARRIED_OPERATOR_H_
#define PERMAFROST_IO_FORMATS_TFLITE_CARRIED_OPERATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/formats/tflite/container.h"

namespace permafrost {

// True for an op "TFLite:<name>".
bool IsCarried(Op op);

// The content of the attribute `model`.
struct CarriedOperator {
  tflite::OperatorCodeT code;
  tflite::OperatorT op;  // Operands and results are indices into `tensors`.
  std::vector<std::unique_ptr<tflite::TensorT>> tensors;
  int num_inputs = 0, num_outputs = 0;
};

// Returns the operator of a node. Returns InvalidArgument or DataLoss, with the node, if the attribute is malformed or
// does not fit the node.
absl::StatusOr<CarriedOperator> ReadCarried(const Node& node);

// Replaces the description of the operator. REQUIRES: the same numbers of inputs and outputs.
void StoreCarried(const CarriedOperator& carried, Node* node);

// Returns the number of the operator: the larger of the two fields that may hold it.
tflite::BuiltinOperator OperatorOf(const tflite::OperatorCodeT& code);

// Returns the bytes that a copy of a description takes, about. Parts that tables share are copied for each.
uint64_t DescriptionBytes(const tflite::Tensor& tensor);

// Returns the numbers of the subgraphs that an operator calls.
std::vector<int> CalledSubgraphs(const tflite::OperatorT& op);

// True if the graph carries an operator that calls subgraphs. Same errors as ReadCarried.
absl::StatusOr<bool> CarriesCalls(const Graph& graph);

// Adds nodes for operators of one subgraph.
class CarriedOperatorMaker {
 public:
  // Does not own the container and the graph.
  CarriedOperatorMaker(TfliteContainer* container, int subgraph, Graph* graph)
      : container_(container), subgraph_(subgraph), graph_(graph) {}

  // Adds a node before `position` (null: at the end). `value_of` returns the value of a tensor that is computed or fed.
  // Returns ResourceExhausted if the descriptions of all operators together are much larger than the file.
  absl::StatusOr<Node*> Add(const tflite::Operator& op, absl::string_view name, Node* position,
                            const std::function<absl::StatusOr<TensorRef>(int tensor)>& value_of);

 private:
  absl::StatusOr<TensorRef> ConstantOf(int tensor, Node* position);
  absl::Status Take(uint64_t bytes);

  TfliteContainer* container_;
  int subgraph_;
  Graph* graph_;
  absl::flat_hash_map<int, TensorRef> constants_;  // By tensor.
  uint64_t described_bytes_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_CARRIED_OPERATOR_H_

// Imports one operator of a TensorFlow Lite model: the table of operators, and functions that create their nodes.
//
// A row of the table describes how an operator is expressed in TensorFlow's ops. Its function returns one tensor for
// each result. The node that computes result 0 gets the name of the result's tensor, and the nodes before it get names
// with that prefix.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_IMPORT_H_
#define PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_IMPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "io/formats/tflite/container.h"

namespace permafrost {

class SubgraphImport;

// The state of the import of one operator. Input(i) and the nodes created here belong to the graph of the subgraph.
class OperatorImport {
 public:
  using Attrs = std::vector<std::pair<absl::string_view, AttrValue>>;

  OperatorImport(SubgraphImport* subgraph, const tflite::Operator& op, std::string name)
      : subgraph_(subgraph), op_(op), name_(std::move(name)) {}

  const tflite::Operator& op() const { return op_; }
  Graph& graph();

  // --- Operands and results ---------------------------------------------------------------------------------------
  int num_inputs() const { return op_.inputs() == nullptr ? 0 : static_cast<int>(op_.inputs()->size()); }
  int num_outputs() const { return op_.outputs() == nullptr ? 0 : static_cast<int>(op_.outputs()->size()); }
  // False for an omitted operand, either at the end or with index -1.
  bool HasInput(int i) const;
  // Returns an operand, or InvalidArgument if it is omitted.
  absl::StatusOr<TensorRef> Input(int i);
  absl::StatusOr<std::vector<TensorRef>> Inputs();
  const tflite::Tensor& InputTensor(int i) const;
  const tflite::Tensor& OutputTensor(int i) const;
  DType InputType(int i) const { return DTypeOfTflite(InputTensor(i).type()); }
  DType OutputType(int i) const { return DTypeOfTflite(OutputTensor(i).type()); }
  // Returns the value of operand i if it is a constant of the file, otherwise null.
  absl::StatusOr<const Tensor*> InputValue(int i);
  // Return the stored shapes. For computed tensors they are only hints.
  absl::StatusOr<Shape> InputShape(int i) const { return ShapeOfTflite(InputTensor(i)); }
  absl::StatusOr<Shape> OutputShape(int i) const { return OpenShapeOfTflite(OutputTensor(i)); }

  // --- Nodes ------------------------------------------------------------------------------------------------------
  // Adds a node. Its type and count attributes follow from the inputs and the op's schema; attributes in `attrs` take
  // precedence. Returns Internal for an op without a schema.
  absl::StatusOr<Node*> Add(Op op, absl::Span<const TensorRef> inputs, const Attrs& attrs = {});
  // Same, and returns output 0 of the node.
  absl::StatusOr<TensorRef> Emit(Op op, absl::Span<const TensorRef> inputs, const Attrs& attrs = {});
  absl::StatusOr<TensorRef> Const(Tensor value);
  absl::StatusOr<TensorRef> Ints(absl::Span<const int32_t> values);
  // Adds a scalar constant of the same type as `like`: float, double, half or an integer.
  absl::StatusOr<TensorRef> ScalarLike(TensorRef like, double value);
  // Returns the type of an operand or of a tensor created here.
  absl::StatusOr<DType> TypeOf(TensorRef tensor);

  // Adds the fused activation. Returns Unimplemented for SIGN_BIT.
  absl::StatusOr<TensorRef> Activate(TensorRef x, tflite::ActivationFunctionType activation);

  // Adds min(max(x, least), most).
  absl::StatusOr<TensorRef> Clamp(TensorRef x, double least, double most);

  // True for a node created by this import.
  bool IsOwn(const Node& node) const { return own_.contains(&node); }

  // Returns the function made from another subgraph.
  absl::StatusOr<FunctionRef> FunctionOf(int subgraph);

 private:
  SubgraphImport* subgraph_;
  const tflite::Operator& op_;
  std::string name_;
  absl::flat_hash_set<const Node*> own_;
};

// One tensor for each result of an operator.
using Results = absl::StatusOr<std::vector<TensorRef>>;

using OperatorFunction = Results (*)(OperatorImport*);

// Imports an operator as the op `kOp`, with the operands unchanged.
template <ops::OpId kOp>
Results Direct(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(kOp, inputs));
  return std::vector<TensorRef>{y};
}

// Returns the first `count` outputs of the node.
std::vector<TensorRef> AllOutputs(Node* node, int count);

// A row of the table of operators.
struct OperatorRow {
  tflite::BuiltinOperator op;
  int least_inputs = 0;
  int num_outputs = 1;  // -1: any number.
  OperatorFunction import = nullptr;
  // Moves elements without interpreting them, so that codes of quantised tensors can be passed as integers.
  bool moves_elements = false;
};

// Return the rows by family; together they are the table.
absl::Span<const OperatorRow> ArrayOperators();
absl::Span<const OperatorRow> ArithmeticOperators();
absl::Span<const OperatorRow> NeuralOperators();
absl::Span<const OperatorRow> ControlOperators();

// A custom operator, by its name in the file.
struct CustomOperatorRow {
  absl::string_view name;
  OperatorRow row;
};
absl::Span<const CustomOperatorRow> CustomOperators();

// Returns the row of an operator, including custom ones, or null if there is none.
const OperatorRow* FindOperator(const TfliteContainer& container, const tflite::Operator& op);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_IMPORT_H_

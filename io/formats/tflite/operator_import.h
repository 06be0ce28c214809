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
#include "io/formats/tflite/operator_export.h"

namespace permafrost {

class SubgraphImport;

// How an operator treats quantised operands and results.
enum class Codes : uint8_t {
  kRefused,   // There is no kernel for codes.
  kMoved,     // Codes are integers like any others: they are moved, compared with each other or selected.
  kComputed,  // Computes with the numbers that codes represent: operands are dequantised, the result is quantised, and
              // the operator is marked, so that an integer kernel computes it (graph/analysis/uniform_quantization.h).
  kExact,     // The same without the mark: the float ops give the same codes.
};

// The state of the import of one operator. Input(i) and the nodes created here belong to the graph of the subgraph.
class OperatorImport {
 public:
  using Attrs = std::vector<std::pair<absl::string_view, AttrValue>>;

  // `codes` applies if an operand or a result is quantised.
  OperatorImport(SubgraphImport* subgraph, const tflite::Operator& op, std::string name, Codes codes);

  const tflite::Operator& op() const { return op_; }
  Graph& graph();
  SubgraphImport& subgraph() { return *subgraph_; }

  // --- Operands and results ---------------------------------------------------------------------------------------
  int num_inputs() const { return op_.inputs() == nullptr ? 0 : static_cast<int>(op_.inputs()->size()); }
  int num_outputs() const { return op_.outputs() == nullptr ? 0 : static_cast<int>(op_.outputs()->size()); }
  // False for an omitted operand, either at the end or with index -1.
  bool HasInput(int i) const;
  // Returns an operand, or InvalidArgument if it is omitted. Dequantised if ComputesWithCodes() and the operand is
  // quantised.
  absl::StatusOr<TensorRef> Input(int i);
  absl::StatusOr<std::vector<TensorRef>> Inputs();
  const tflite::Tensor& InputTensor(int i) const;
  const tflite::Tensor& OutputTensor(int i) const;
  // Return the types of the tensors that Input returns, and that the operator's function must return.
  DType InputType(int i) const;
  DType OutputType(int i) const;
  // Returns the value of operand i if it is a constant of the file that Input does not dequantise, otherwise null.
  absl::StatusOr<const Tensor*> InputValue(int i);

  // --- Quantised tensors ------------------------------------------------------------------------------------------
  bool IsQuantizedInput(int i) const { return HasInput(i) && IsQuantized(InputTensor(i)); }
  bool IsQuantizedOutput(int i) const { return IsQuantized(OutputTensor(i)); }
  // True if quantised operands are dequantised and quantised results are quantised again.
  bool ComputesWithCodes() const { return computes_; }
  // Treats codes as kComputed from now on.
  void ComputeWithCodes() {
    computes_ = true;
    is_marked_ = true;
  }
  // Sets the rounding of the operator's accumulators (kRoundingAttr); "twice" unless it is called.
  void SetRounding(absl::string_view rounding) { rounding_ = std::string(rounding); }
  // Marks the operator's last node with an attribute, if the operator is marked at all.
  void Mark(absl::string_view key, AttrValue value) { marks_.emplace_back(key, std::move(value)); }
  // Returns a new node that dequantises operand i. InvalidArgument if its scales are invalid.
  absl::StatusOr<TensorRef> Dequantized(int i);
  // Returns the bias in operand i, dequantised by the product of the scales of operands `input` and `filter`: LiteRT
  // ignores the bias's own scale. Same as Input(i) for a bias that is not an integer.
  absl::StatusOr<TensorRef> Bias(int i, int input, int filter);
  // Converts the results of the operator's function to the operator's results: quantises them and adds the marks.
  absl::Status Quantize(std::vector<TensorRef>* results);
  // Return the stored shapes. For computed tensors they are only hints.
  absl::StatusOr<Shape> InputShape(int i) const { return ShapeOfTflite(InputTensor(i)); }
  absl::StatusOr<Shape> OutputShape(int i) const { return OpenShapeOfTflite(OutputTensor(i)); }

  // --- State ------------------------------------------------------------------------------------------------------
  // Returns the value of a variable tensor, a state that the operator reads and changes. The tensor becomes a resource
  // variable. InvalidArgument for an operand that is no variable tensor.
  absl::StatusOr<TensorRef> State(int i);
  // Assigns the new value of a variable tensor.
  absl::Status SetState(int i, TensorRef value);

  // --- Nodes ------------------------------------------------------------------------------------------------------
  // Adds a node. Its type and count attributes follow from the inputs and the op's schema; attributes in `attrs` take
  // precedence. Returns Internal for an op without a schema.
  absl::StatusOr<Node*> Add(Op op, absl::Span<const TensorRef> inputs, const Attrs& attrs = {});
  // Same, and returns output 0 of the node.
  absl::StatusOr<TensorRef> Emit(Op op, absl::Span<const TensorRef> inputs, const Attrs& attrs = {});
  absl::StatusOr<TensorRef> Const(Tensor value);
  absl::StatusOr<TensorRef> Ints(absl::Span<const int32_t> values);
  // Adds a scalar constant of the same type as `like`: float, double or a signed integer or uint8.
  absl::StatusOr<TensorRef> ScalarLike(TensorRef like, double value);
  // Returns the type of an operand or of a tensor created here.
  absl::StatusOr<DType> TypeOf(TensorRef tensor);

  // Adds the fused activation; for codes, a clamp of codes by the scale of result 0. Returns Unimplemented for
  // SIGN_BIT.
  absl::StatusOr<TensorRef> Activate(TensorRef x, tflite::ActivationFunctionType activation);

  // Adds min(max(x, least), most).
  absl::StatusOr<TensorRef> Clamp(TensorRef x, double least, double most);

  // True for a node created by this import.
  bool IsOwn(const Node& node) const { return own_.contains(&node); }

  // Returns the function made from another subgraph.
  absl::StatusOr<FunctionRef> FunctionOf(int subgraph);
  // Adds a node that calls functions made from `subgraphs`: `stateful` if one of them reads or changes resources, in
  // its place among the operators that do, otherwise `stateless`.
  absl::StatusOr<Node*> AddCall(Op stateless, Op stateful, absl::Span<const int> subgraphs,
                                absl::Span<const TensorRef> inputs, const Attrs& attrs);

 private:
  absl::StatusOr<TensorRef> ClampCodes(TensorRef x, tflite::ActivationFunctionType activation);

  SubgraphImport* subgraph_;
  const tflite::Operator& op_;
  std::string name_;
  bool computes_ = false, is_marked_ = false;
  std::string rounding_ = "twice";
  Attrs marks_;
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

// A row of the table of operators, with its reader and its writer.
struct OperatorRow {
  tflite::BuiltinOperator op;
  int least_inputs = 0;
  int num_outputs = 1;  // -1: any number.
  OperatorFunction import = nullptr;
  Codes codes = Codes::kRefused;
  OperatorForm form = {};  // How the operator is written; empty if it is only read.
};

// Return the rows by family; together they are the table.
absl::Span<const OperatorRow> ArrayOperators();
absl::Span<const OperatorRow> ArithmeticOperators();
absl::Span<const OperatorRow> NeuralOperators();
absl::Span<const OperatorRow> ControlOperators();
absl::Span<const OperatorRow> RecurrentOperators();
absl::Span<const OperatorRow> ResourceOperators();
absl::Span<const OperatorRow> VolumeOperators();
absl::Span<const OperatorRow> WindowOperators();
absl::Span<const OperatorRow> RandomOperators();
absl::Span<const OperatorRow> TextOperators();
absl::Span<const OperatorRow> StablehloOperators();

// A custom operator, by its name in the file.
struct CustomOperatorRow {
  absl::string_view name;
  OperatorRow row;
};
absl::Span<const CustomOperatorRow> CustomOperators();
absl::Span<const CustomOperatorRow> CustomWindowOperators();

// Returns the row of an operator, including custom ones, or null if there is none.
const OperatorRow* FindOperator(const TfliteContainer& container, const tflite::Operator& op);
// Same, for a builtin operator.
const OperatorRow* FindBuiltinOperator(tflite::BuiltinOperator op);

// Returns why a builtin operator without a row has none: "has no kernel in LiteRT". Empty for the others.
absl::string_view WhyNoRow(tflite::BuiltinOperator op);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_IMPORT_H_

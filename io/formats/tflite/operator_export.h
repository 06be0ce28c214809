// Exports nodes as operators of a TensorFlow Lite model: the written half of the table of operators.
//
// The form of an operator in a graph is the one that its import creates: Conv2D, BiasAdd and Relu are one CONV_2D. The
// form is matched backwards from its last node, the root. Layouts of constants change on the way; arithmetic does not.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_EXPORT_H_
#define PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_EXPORT_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "io/formats/tflite/carried_operator.h"
#include "io/formats/tflite/schema_generated.h"

namespace permafrost {

class OperatorExport;
class SubgraphExport;

// Describes the nodes of `op` as one operator. Returns Unimplemented, "expected ...", if they do not have the form of
// the operator.
using ExportFunction = absl::Status (*)(OperatorExport* op);

// Properties of the form of an operator, combined with |.
enum FormTraits : uint32_t {
  kPlain = 0,
  kTakesActivation = 1 << 0,  // A following Relu, Relu6 or clamp to [-1, 1] belongs to the operator.
  kTakesBias = 1 << 1,        // A following BiasAdd with a constant belongs to the operator.
  kComposed = 1 << 2,         // Several nodes that compute one function; tried before the forms of their root alone.
};

// How an operator is written. All fields are empty for an operator that is only read.
struct OperatorForm {
  // Ops of the node that computes.
  ops::OpId ops[4] = {ops::kNumKnownOps, ops::kNumKnownOps, ops::kNumKnownOps, ops::kNumKnownOps};
  uint32_t traits = kPlain;
  ExportFunction write = nullptr;
  // Types of the operand that determines the version, by name, each with its version if that is not 1: "float int64:4".
  // A first word such as "@1" selects an operand of the node other than 0. Empty: any type.
  absl::string_view types;
  // The first runtime that has version 1, 2, ... of the operator; "-" for a version that does not exist.
  absl::string_view runtimes;
  // Types of codes that the operator has kernels for, each with its version as in `types`. Empty: no kernel.
  absl::string_view codes;
};

// Returns the form of operators that the nodes of `ops`, at most four, compute.
constexpr OperatorForm Form(std::initializer_list<ops::OpId> ops, uint32_t traits, ExportFunction write,
                            absl::string_view types, absl::string_view runtimes, absl::string_view codes = "") {
  OperatorForm form;
  size_t i = 0;
  for (const ops::OpId op : ops) form.ops[i++] = op;
  form.traits = traits;
  form.write = write;
  form.types = types;
  form.runtimes = runtimes;
  form.codes = codes;
  return form;
}

// The version that the types of a form determine for `dtype`, or Unimplemented: "computes with double, expected float".
absl::StatusOr<int> VersionFor(const OperatorForm& form, DType dtype);
// The same for an operator on codes of `dtype`.
absl::StatusOr<int> VersionForCodes(const OperatorForm& form, DType dtype);
// The operand of the node whose type determines the version.
int TypedOperand(const OperatorForm& form);
// The first runtime with a version of an operator, or Internal if the form has no such version.
absl::StatusOr<absl::string_view> RuntimeOf(const OperatorForm& form, int version);

// One operator as it will be written.
struct ExportedOperator {
  tflite::BuiltinOperator op = tflite::BuiltinOperator::CUSTOM;
  int version = 1;
  std::vector<int32_t> inputs, outputs;  // Tensors; -1 for an omitted operand.
  tflite::BuiltinOptions options_type = tflite::BuiltinOptions::NONE;
  tflite::BuiltinOptions2 options_2_type = tflite::BuiltinOptions2::NONE;  // One of both types is NONE.
  flatbuffers::Offset<void> options;
  std::string custom_name, custom_options;         // Of CUSTOM.
  std::shared_ptr<const CarriedOperator> carried;  // If not null, it has the code and the options.
};

// The state of the export of one operator.
class OperatorExport {
 public:
  // `node` is the node that computes, `root` the last node of the operator.
  OperatorExport(SubgraphExport* subgraph, Node* node, Node* root) : subgraph_(subgraph), node_(node), root_(root) {}

  // --- The nodes ---------------------------------------------------------------------------------------------------
  Node& node() const { return *node_; }
  int num_inputs() const { return node_->num_data_inputs(); }
  TensorRef input(int i) const { return node_->input(i); }
  // The constant bias that follows the node; its node is null if there is none.
  TensorRef bias() const { return bias_; }
  void set_bias(TensorRef bias) { bias_ = bias; }
  tflite::ActivationFunctionType activation() const { return activation_; }
  void set_activation(tflite::ActivationFunctionType activation) { activation_ = activation; }

  Shape ShapeOf(TensorRef tensor) const;
  absl::StatusOr<DType> TypeOf(TensorRef tensor) const;
  // Returns the constant behind a tensor, or Unimplemented: "reads node 'w' (Add), expected a constant".
  absl::StatusOr<Tensor> Constant(TensorRef tensor) const;
  // Same, but of a constant of half that is converted to float, returns the numbers of half, and of dequantised weights
  // of a quantised operator, the codes.
  absl::StatusOr<Tensor> Weight(TensorRef tensor) const;
  absl::StatusOr<std::vector<int64_t>> ConstantIntegers(TensorRef tensor) const;
  // Returns the only element of a constant of one number.
  absl::StatusOr<double> ConstantScalar(TensorRef tensor) const;
  // True if `inner`, a node of a composed form, is read only by the form: its nodes need not be written twice.
  bool IsReadOnce(const Node& inner) const;

  // --- Quantised operators: see export_quantized.h -----------------------------------------------------------------
  bool is_quantized() const { return end_ != nullptr; }
  // True for an operator with float input and quantised weights.
  bool is_dynamic() const { return is_dynamic_; }
  // The mark of a dynamic operator: its quantised input has a zero point.
  bool is_asymmetric() const;
  // The scales of a tensor of codes, or of one that is dequantised; null if it is float.
  const UniformScales* ScalesBehind(TensorRef tensor) const;
  // The type of the codes of operand `input`.
  absl::StatusOr<DType> CodesOfOperand(int input) const;
  // The same for weights, with `axis` as the axis of several scales. Nothing in a float operator.
  std::optional<UniformScales> WeightScales(TensorRef weights, int axis) const;

  // --- The operator ------------------------------------------------------------------------------------------------
  // Operands are added to the model after the function has returned OK.
  void AddOperand(TensorRef tensor) { operands_.push_back({tensor, Tensor(), Operand::kTensor, {}}); }
  // Adds an operand that must be int32: a constant of int64 is converted, another tensor of int64 is read by a CAST.
  void AddIntegers(TensorRef tensor) { operands_.push_back({tensor, Tensor(), Operand::kIntegers, {}}); }
  void AddConstant(Tensor value) { operands_.push_back({{}, std::move(value), Operand::kConstant, {}}); }
  // Same, for numbers that the operator reads as float: those of half stand behind a DEQUANTIZE. Codes have scales.
  void AddWeight(Tensor value, std::optional<UniformScales> scales = std::nullopt) {
    operands_.push_back({{}, std::move(value), Operand::kWeight, std::move(scales)});
  }
  void OmitOperand() { operands_.push_back({{}, Tensor(), Operand::kOmitted, {}}); }
  // Adds the position (i, 0, ..., 0) of `rank` dimensions, for a tensor with the one number i.
  void AddPosition(TensorRef tensor, int rank) {
    operands_.push_back({tensor, Tensor::Scalar<int32_t>(rank), Operand::kPosition, {}});
  }
  // The operator returns the elements of result 0 in this shape; a RESHAPE gives them the shape of the node's output.
  void SetInnerShape(Shape shape) { inner_shape_ = std::move(shape); }
  // The operator whose form is tried.
  tflite::BuiltinOperator target() const { return exported_.op; }
  // Requires the version that the form gives `dtype`, beside that of the typed operand.
  absl::Status RequireVersionFor(DType dtype);
  // Sets the version to at least this.
  void RequireVersion(int version) { exported_.version = std::max(exported_.version, version); }
  flatbuffers::FlatBufferBuilder& builder();
  template <typename Options>
  void SetOptions(flatbuffers::Offset<Options> options) {
    exported_.options_type = tflite::BuiltinOptionsTraits<Options>::enum_value;
    exported_.options = options.Union();
  }
  // Same, for an operator whose options are in the schema's second union.
  template <typename Options>
  void SetOptions2(flatbuffers::Offset<Options> options) {
    exported_.options_2_type = tflite::BuiltinOptions2Traits<Options>::enum_value;
    exported_.options = options.Union();
  }

  // --- Other subgraphs ---------------------------------------------------------------------------------------------
  // Returns the subgraph of the function in an attribute of the node, whose arguments have these shapes.
  absl::StatusOr<int32_t> SubgraphOf(absl::string_view attr, std::vector<Shape> args);
  // Same, for an attribute that lists functions.
  absl::StatusOr<std::vector<int32_t>> SubgraphsOf(absl::string_view attr, const std::vector<Shape>& args);
  // Records that the model uses the variable or table of the node, so that its initialiser is written. Returns the name
  // by which all subgraphs refer to it.
  std::string UseResource();

 private:
  struct Operand {
    enum Kind { kTensor, kIntegers, kConstant, kWeight, kOmitted, kPosition };
    TensorRef ref;
    Tensor value;
    Kind kind;
    std::optional<UniformScales> scales;
  };
  friend class SubgraphExport;

  SubgraphExport* subgraph_;
  Node* node_;
  Node* root_;
  TensorRef bias_;
  tflite::ActivationFunctionType activation_ = tflite::ActivationFunctionType::NONE;
  const OperatorForm* form_ = nullptr;
  const Node* end_ = nullptr;  // The node with the mark of a quantised operator; null for a float operator.
  bool is_dynamic_ = false;
  int32_t result_ = -1;  // The tensor of the result, if it is not output 0 of the last node.
  std::vector<Operand> operands_;
  std::optional<Shape> inner_shape_;
  ExportedOperator exported_;
};

// Functions of the table, by family. Each returns Unimplemented if the nodes do not have its form.
absl::Status ExportConcatenation(OperatorExport* op);
absl::Status ExportReshape(OperatorExport* op);
absl::Status ExportSqueeze(OperatorExport* op);
absl::Status ExportExpandDims(OperatorExport* op);
absl::Status ExportTranspose(OperatorExport* op);
absl::Status ExportPad(OperatorExport* op);
absl::Status ExportMirrorPad(OperatorExport* op);
absl::Status ExportTile(OperatorExport* op);
absl::Status ExportPack(OperatorExport* op);
absl::Status ExportUnpack(OperatorExport* op);
absl::Status ExportSplit(OperatorExport* op);
absl::Status ExportSplitV(OperatorExport* op);
absl::Status ExportSlice(OperatorExport* op);
absl::Status ExportStridedSlice(OperatorExport* op);
absl::Status ExportGather(OperatorExport* op);
absl::Status ExportGatherNd(OperatorExport* op);
absl::Status ExportScatterNd(OperatorExport* op);
absl::Status ExportOneHot(OperatorExport* op);
absl::Status ExportFill(OperatorExport* op);
absl::Status ExportShape(OperatorExport* op);
absl::Status ExportTopK(OperatorExport* op);
absl::Status ExportUnique(OperatorExport* op);
absl::Status ExportReverse(OperatorExport* op);
absl::Status ExportReverseSequence(OperatorExport* op);
absl::Status ExportSpaceToDepth(OperatorExport* op);
absl::Status ExportDepthToSpace(OperatorExport* op);
absl::Status ExportSpaceToBatch(OperatorExport* op);
absl::Status ExportBroadcastTo(OperatorExport* op);

absl::Status ExportElementwise(OperatorExport* op);  // All operands as they are, without options.
absl::Status ExportBroadcast(OperatorExport* op);    // The same; version 3 for more than four dimensions.
absl::Status ExportAdd(OperatorExport* op);
absl::Status ExportSub(OperatorExport* op);
absl::Status ExportMul(OperatorExport* op);
absl::Status ExportDiv(OperatorExport* op);
absl::Status ExportReluN1To1(OperatorExport* op);
absl::Status ExportRelu0To1(OperatorExport* op);
absl::Status ExportLeakyRelu(OperatorExport* op);
absl::Status ExportPRelu(OperatorExport* op);
absl::Status ExportHardSwish(OperatorExport* op);
absl::Status ExportGelu(OperatorExport* op);
absl::Status ExportReduction(OperatorExport* op);
absl::Status ExportArgMax(OperatorExport* op);
absl::Status ExportArgMin(OperatorExport* op);
absl::Status ExportCast(OperatorExport* op);
absl::Status ExportDequantize(OperatorExport* op);
absl::Status ExportFakeQuant(OperatorExport* op);
absl::Status ExportCumsum(OperatorExport* op);
absl::Status ExportBucketize(OperatorExport* op);
absl::Status ExportSelect(OperatorExport* op);
absl::Status ExportSegments(OperatorExport* op);

absl::Status ExportConv2D(OperatorExport* op);
absl::Status ExportDepthwiseConv2D(OperatorExport* op);
absl::Status ExportTransposeConv(OperatorExport* op);
absl::Status ExportConv3D(OperatorExport* op);
absl::Status ExportFullyConnected(OperatorExport* op);
absl::Status ExportBatchMatMul(OperatorExport* op);
absl::Status ExportPool(OperatorExport* op);
absl::Status ExportSoftmax(OperatorExport* op);
absl::Status ExportL2Normalization(OperatorExport* op);
absl::Status ExportLocalResponseNormalization(OperatorExport* op);
absl::Status ExportResizeBilinear(OperatorExport* op);
absl::Status ExportResizeNearestNeighbor(OperatorExport* op);
absl::Status ExportRfft2D(OperatorExport* op);
absl::Status ExportNonMaxSuppression(OperatorExport* op);

absl::Status ExportIf(OperatorExport* op);
absl::Status ExportWhile(OperatorExport* op);
absl::Status ExportCase(OperatorExport* op);
absl::Status ExportDynamicUpdateSlice(OperatorExport* op);

absl::Status ExportVarHandle(OperatorExport* op);
absl::Status ExportReadVariable(OperatorExport* op);
absl::Status ExportAssignVariable(OperatorExport* op);
absl::Status ExportHashTable(OperatorExport* op);
absl::Status ExportHashTableImport(OperatorExport* op);
absl::Status ExportHashTableFind(OperatorExport* op);
absl::Status ExportHashTableSize(OperatorExport* op);

// Returns the type in a file, or Unimplemented for a type that the format does not have.
absl::StatusOr<tflite::TensorType> TfliteTypeOf(DType dtype);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_OPERATOR_EXPORT_H_

// Exports a graph as a TensorFlow Lite model: selects operators backwards from the outputs, and encodes the file. The
// graph is the first subgraph; functions of branches and loops are subgraphs, too.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_EXPORT_H_
#define PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_EXPORT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "io/formats/tflite/export_quantized.h"
#include "io/formats/tflite/operator_export.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {

struct TfliteLimits {
  // Writes nodes without a form as TensorFlow's ops (Flex), which runtimes with TensorFlow's kernels run.
  bool allow_flex = false;

  // Limit on the bytes that 32-bit offsets reach. Larger models keep constants behind the FlatBuffer, which runtimes
  // read since 2.15.
  uint64_t max_flatbuffer_bytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1;
};

// Writes the graph, whose interface must be declared, as a model with the signature "serving_default". Constants are
// streamed from the memory of the graph; only the rest of the FlatBuffer is held in memory. Returns Unimplemented, with
// a list of all nodes without a form in the format and the pass that would change each, if known.
// Nodes that carry operators are written as these. If the graph was read from a TensorFlow Lite model, the other
// subgraphs that are still called, the signatures, the metadata and the archive at the end are written again.
absl::Status ExportTflite(const Graph& graph, const TfliteLimits& limits, ByteSink* sink);

// Writes a copy of a model with another content of the metadata `key`, followed by `archive` in place of its own.
absl::Status CopyTflite(const TfliteContainer& source, absl::string_view key, const std::string& content,
                        const std::string& archive, ByteSink* sink);

// The buffers, operator codes and operators of a model under construction.
class ModelExport {
 public:
  // Does not own the graph of the first subgraph.
  ModelExport(const Graph& graph, FunctionLibrary library, bool allow_flex)
      : graph_(graph), library_(std::move(library)), allow_flex_(allow_flex) {}

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }
  bool allow_flex() const { return allow_flex_; }

  // A function that operators call, in the order of subgraphs from 1 on.
  struct Callee {
    std::string name;
    std::vector<Shape> args;
    std::unique_ptr<Graph> body;
  };
  // Returns the subgraph of a function whose arguments have these shapes, a new one for new shapes. Returns
  // Unimplemented for a function that does not exist, is recursive, or depends on attributes of unknown ops.
  absl::StatusOr<int32_t> SubgraphOf(const FunctionRef& function, std::vector<Shape> args);
  const std::vector<std::unique_ptr<Callee>>& callees() const { return callees_; }
  // Sets the number of the subgraph of the first function, 1 unless it is called. REQUIRES: no function was used yet.
  void SetFirstCallee(size_t index) {
    first_callee_ = index;
    keeps_subgraphs_ = true;
  }
  // True if the subgraphs of the source are copied.
  bool keeps_subgraphs() const { return keeps_subgraphs_; }
  // Records that the model uses a variable or table (VarHandleOp, HashTableV2), and returns its name.
  std::string UseResource(const Node& node);
  // Returns the nodes of the graph that initialise the resources in use. Adds a problem for an initial value that is
  // not constant.
  std::vector<Node*> Initializers();

  // Returns the buffer with these bytes. Equal buffers are shared.
  uint32_t BufferOf(absl::string_view bytes, Owner owner);
  uint32_t OperatorCode(tflite::BuiltinOperator op, int version, absl::string_view custom_name = "");
  // Records that the model needs a runtime of at least this version ("2.3").
  void RequireRuntime(absl::string_view runtime);

  // Records a node that has no form; further ones are counted but not listed.
  void AddProblem(std::string problem) { problems_.push_back(std::move(problem)); }
  // Records that a node with a problem could be a Flex operator.
  void NoteFlex() { may_flex_ = true; }
  absl::Status Problems() const;

  // --- Parts of another model, see carried_export.cc ---------------------------------------------------------------
  // Adds the metadata, the description and the archive at the end of the file. The container must outlive this object.
  absl::Status KeepSurroundings(const TfliteContainer& source);
  // Replaces the content of a metadata entry, or adds one. An empty archive stands for none.
  void SetMetadata(absl::string_view key, const std::string& content, const std::string& archive);
  // Copies a subgraph. The numbers of subgraphs in it must stay valid.
  absl::StatusOr<flatbuffers::Offset<tflite::SubGraph>> CopySubgraph(const TfliteContainer& source, int index);

  // Encodes the model and writes it.
  absl::Status Write(std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs,
                     std::vector<flatbuffers::Offset<tflite::SignatureDef>> signatures, const TfliteLimits& limits,
                     ByteSink* sink);

 private:
  // Counts copied descriptions against a limit. Returns ResourceExhausted.
  absl::Status TakeCopied(uint64_t bytes, uint64_t file_bytes);

  struct Content {
    absl::string_view bytes;
    Owner owner;
  };
  struct Code {
    tflite::BuiltinOperator op;
    int version;
    std::string custom_name;

    friend bool operator==(const Code& a, const Code& b) {
      return a.op == b.op && a.version == b.version && a.custom_name == b.custom_name;
    }
  };
  const Graph& graph_;
  const FunctionLibrary library_;
  const bool allow_flex_;
  bool may_flex_ = false;  // --allow_flex would remove a problem.
  size_t first_callee_ = 1;
  bool keeps_subgraphs_ = false;
  std::vector<std::unique_ptr<Callee>> callees_;
  absl::flat_hash_map<std::string, int32_t> subgraph_of_;  // By function and shapes.
  absl::flat_hash_set<std::string> resources_;             // Names of those in use.
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<Content> buffers_ = {{}};  // Buffer 0 is empty.
  absl::flat_hash_map<absl::string_view, uint32_t> buffer_of_;
  std::vector<Code> codes_;
  std::vector<std::pair<std::string, uint32_t>> metadata_;  // Names and buffers, without the version of the runtime.
  std::string description_ = "Permafrost";
  std::string archive_;  // Follows the model.
  uint64_t archive_origin_ = 0;
  uint64_t copied_bytes_ = 0;
  std::vector<std::string> problems_;
  std::string runtime_ = "1.5.0";
};

// The state of the export of one graph: that of the model, the body of a function, or initialisers.
class SubgraphExport {
 public:
  // Does not own its arguments, which must outlive it.
  SubgraphExport(ModelExport* model, const Graph& graph, std::string name)
      : model_(model), graph_(graph), name_(std::move(name)) {}

  // Selects the operators of the declared outputs. Problems of single nodes are added to the model. Tensors of the
  // interface are described as in subgraph `entry` of `source`, unless it is null.
  absl::Status Run(const TfliteContainer* source = nullptr, int entry = 0);
  // The same for the body of a function, with the shapes of its arguments.
  absl::Status RunBody(absl::Span<const Shape> args);
  // Selects the operators that `nodes` need, and has neither inputs nor outputs.
  absl::Status RunInitializers(const std::vector<Node*>& nodes);
  // Adds an operator before all others.
  void Prepend(ExportedOperator op) { operators_.insert(operators_.begin(), std::move(op)); }
  // Returns an error for a tensor that a file cannot have.
  absl::Status CheckTensors();
  flatbuffers::Offset<tflite::SubGraph> Encode();
  flatbuffers::Offset<tflite::SignatureDef> EncodeSignature(absl::string_view key, uint32_t subgraph);
  // Encodes the signatures of the source that are still valid: those of `entry`, with arguments that were added and
  // without those that were removed, and those of other subgraphs if `has_others`.
  absl::StatusOr<std::vector<flatbuffers::Offset<tflite::SignatureDef>>> KeepSignatures(const TfliteContainer& source,
                                                                                        int entry, bool has_others);

  ModelExport& model() { return *model_; }
  const ShapeMap& shapes() const { return shapes_; }
  const Graph& graph() const { return graph_; }

  // Returns the tensor of an output, after Identity and similar nodes. It is added on first use.
  int32_t TensorOf(TensorRef ref);
  int32_t AddConstant(Tensor value, absl::string_view name);
  int32_t AddTensor(absl::string_view name, DType dtype, const Shape& shape);
  // The number of data uses by nodes that the outputs need.
  int NumReaders(const Node& node) const;
  const QuantizedTensors& quantized() const { return quantized_; }
  // Returns the codes of constant weights of a quantised operator, in the layout of the node that reads `ref`, or
  // Unimplemented.
  absl::StatusOr<Tensor> WeightCodes(TensorRef ref) const;

 private:
  struct TensorRecord {
    std::string name;
    DType dtype = DType::kInvalid;
    Shape shape;
    Tensor value;                                 // Of a constant.
    std::shared_ptr<const tflite::TensorT> kept;  // The description in a source; the fields above but `value` and
                                                  // `name` do not apply.
    std::optional<UniformScales> scales;          // Of codes.
  };

  // The end of a quantised operator, in export_quantized.cc.
  struct QuantizedEnd {
    const Node* end = nullptr;  // The node with the mark; null for a float operator.
    bool is_dynamic = false;
    int32_t result = -1;
  };

  // Adds the operator whose last node is `root`.
  absl::Status Select(Node* root, const QuantizedEnd& end);
  // Same, for a node that carries an operator.
  absl::Status SelectCarried(Node* node);
  // Returns the tensor of a constant operand of a carried operator.
  absl::StatusOr<int32_t> KeptConstant(const Node& constant, const tflite::TensorT& tensor);
  // Gives a tensor the description that a carried operator has of it. Adds a problem of `node` if they contradict.
  void Describe(int32_t index, const tflite::TensorT& tensor, bool is_result, const Node& node);
  // Gives declared inputs and outputs the descriptions and names that they have in the source.
  void DescribeInterface(const TfliteContainer& source, int entry);
  // Adds the operator that ends at a node with a mark, or that quantises or dequantises.
  absl::Status SelectQuantized(Node* end);
  // Adds QUANTIZE or DEQUANTIZE.
  absl::Status AddConversion(Node* node);
  // Returns the tensor of codes behind an operand of a quantised operator. Reshapes become operators on codes.
  absl::StatusOr<int32_t> CodesOf(TensorRef ref, std::vector<ExportedOperator>* conversions);
  ExportedOperator Reshaping(int32_t from, TensorRef shape, int32_t to);
  // Tries the forms of `node` that have all of `traits`. Returns Unimplemented with the last reason.
  absl::Status TryForms(Node* node, Node* root, TensorRef bias, tflite::ActivationFunctionType activation,
                        uint32_t traits, const QuantizedEnd& end);
  // Adds the node as a Flex operator. Returns Unimplemented if it cannot be one.
  absl::Status SelectFlex(Node* node);
  // Adds the node as a custom operator with all its inputs and outputs.
  absl::Status SelectCustom(Node* node, std::string name, std::string options);
  absl::Status TryRow(const OperatorRow& row, OperatorExport op);
  absl::StatusOr<int32_t> Integers(TensorRef ref, std::vector<ExportedOperator>* conversions);
  int32_t Dequantized(Tensor value, absl::string_view name, std::vector<ExportedOperator>* conversions);
  // Returns the tensor that an output forwards: that of a declared input, a constant or a node that computes.
  TensorRef Resolve(TensorRef ref) const;
  bool IsFed(TensorRef ref) const;
  absl::Status Prepare(const std::vector<Node*>& roots, const ShapeInferenceOptions& options);
  absl::Status SelectAll();
  // Returns a tensor with the position (i, 0, ..., 0) of `rank` dimensions.
  absl::StatusOr<int32_t> Position(TensorRef ref, int rank, std::vector<ExportedOperator>* conversions);
  // Returns a RESHAPE of a tensor.
  ExportedOperator Reshaped(int32_t from, int32_t to, const Shape& shape);
  flatbuffers::Offset<tflite::Tensor> EncodeTensor(const TensorRecord& tensor);

  ModelExport* model_;
  const Graph& graph_;
  const std::string name_;
  ShapeMap shapes_;
  std::vector<Node*> order_;
  QuantizedTensors quantized_;
  std::vector<bool> is_needed_;                              // By node: the outputs depend on it.
  absl::flat_hash_map<TensorRef, int32_t> tensor_of_;        // After Resolve.
  absl::flat_hash_map<TensorRef, std::string> output_name_;  // Declared names of outputs.
  std::vector<TensorRecord> tensors_;
  std::vector<ExportedOperator> operators_;  // The last first.
  std::vector<int32_t> inputs_, outputs_;
  absl::flat_hash_map<std::pair<const Node*, std::string>, int32_t> kept_constants_;  // By encoded description.
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_EXPORT_H_

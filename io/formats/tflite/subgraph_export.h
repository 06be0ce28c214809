// Exports a graph as a TensorFlow Lite model: selects operators backwards from the outputs, and encodes the file.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_EXPORT_H_
#define PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_EXPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "io/formats/tflite/operator_export.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {

struct TfliteLimits {
  // Limit on the bytes that 32-bit offsets reach. Larger models keep constants behind the FlatBuffer, which runtimes
  // read since 2.15.
  uint64_t max_flatbuffer_bytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1;
};

// Writes the graph, whose interface must be declared, as a model with the signature "serving_default". Constants are
// streamed from the memory of the graph; only the rest of the FlatBuffer is held in memory. Returns Unimplemented, with
// a list of all nodes without a form in the format and the pass that would change each, if known.
absl::Status ExportTflite(const Graph& graph, const TfliteLimits& limits, ByteSink* sink);

// The buffers, operator codes and operators of a model under construction.
class ModelExport {
 public:
  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  // Returns the buffer with these bytes. Equal buffers are shared.
  uint32_t BufferOf(absl::string_view bytes, Owner owner);
  uint32_t OperatorCode(tflite::BuiltinOperator op, int version);
  // Records that the model needs a runtime of at least this version ("2.3").
  void RequireRuntime(absl::string_view runtime);

  // Records a node that has no form; further ones are counted but not listed.
  void AddProblem(std::string problem) { problems_.push_back(std::move(problem)); }
  absl::Status Problems() const;

  // Encodes the model and writes it.
  absl::Status Write(std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs,
                     std::vector<flatbuffers::Offset<tflite::SignatureDef>> signatures, const TfliteLimits& limits,
                     ByteSink* sink);

 private:
  struct Content {
    absl::string_view bytes;
    Owner owner;
  };
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<Content> buffers_ = {{}};  // Buffer 0 is empty.
  absl::flat_hash_map<absl::string_view, uint32_t> buffer_of_;
  std::vector<std::pair<tflite::BuiltinOperator, int>> codes_;
  std::vector<std::string> problems_;
  std::string runtime_ = "1.5.0";
};

// The state of the export of one graph.
class SubgraphExport {
 public:
  // Does not own its arguments, which must outlive it.
  SubgraphExport(ModelExport* model, const Graph& graph) : model_(model), graph_(graph) {}

  // Selects the operators. Problems of single nodes are added to the model.
  absl::Status Run();
  flatbuffers::Offset<tflite::SubGraph> Encode();
  flatbuffers::Offset<tflite::SignatureDef> EncodeSignature(absl::string_view key, uint32_t subgraph);

  ModelExport& model() { return *model_; }
  const ShapeMap& shapes() const { return shapes_; }
  const Graph& graph() const { return graph_; }

  // Returns the tensor of an output, after Identity and similar nodes. It is added on first use.
  int32_t TensorOf(TensorRef ref);
  int32_t AddConstant(Tensor value, absl::string_view name);
  int32_t AddTensor(absl::string_view name, DType dtype, const Shape& shape);
  // The number of data uses by nodes that the outputs need.
  int NumReaders(const Node& node) const;

 private:
  struct TensorRecord {
    std::string name;
    DType dtype = DType::kInvalid;
    Shape shape;
    Tensor value;  // Of a constant.
  };

  // Adds the operator whose last node is `root`.
  absl::Status Select(Node* root);
  // Tries the forms of `node` that have all of `traits`. Returns Unimplemented with the last reason.
  absl::Status TryForms(Node* node, Node* root, TensorRef bias, tflite::ActivationFunctionType activation,
                        uint32_t traits);
  absl::Status TryRow(const OperatorRow& row, OperatorExport op);
  absl::StatusOr<int32_t> Integers(TensorRef ref, std::vector<ExportedOperator>* conversions);
  int32_t Dequantized(Tensor value, absl::string_view name, std::vector<ExportedOperator>* conversions);
  // Returns the tensor that an output forwards: that of a declared input, a constant or a node that computes.
  TensorRef Resolve(TensorRef ref) const;
  bool IsFed(TensorRef ref) const;
  absl::Status CheckTensors();
  flatbuffers::Offset<tflite::Tensor> EncodeTensor(const TensorRecord& tensor);

  ModelExport* model_;
  const Graph& graph_;
  ShapeMap shapes_;
  std::vector<bool> is_needed_;                              // By node: the outputs depend on it.
  absl::flat_hash_map<TensorRef, int32_t> tensor_of_;        // After Resolve.
  absl::flat_hash_map<TensorRef, std::string> output_name_;  // Declared names of outputs.
  std::vector<TensorRecord> tensors_;
  std::vector<ExportedOperator> operators_;  // The last first.
  std::vector<int32_t> inputs_, outputs_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_EXPORT_H_

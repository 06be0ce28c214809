// Imports the subgraphs of a TensorFlow Lite model: the first as a graph, those called by operators as functions.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_IMPORT_H_
#define PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_IMPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "io/formats/tflite/container.h"

namespace permafrost {

// Converts the model to a graph that declares the inputs and outputs of the first subgraph, in order. Returns
// Unimplemented, with a list of all operators that cannot be expressed in TensorFlow's ops and the names of their
// tensors.
absl::StatusOr<std::unique_ptr<Graph>> ImportTflite(TfliteContainer container);

// State shared by the subgraphs of one model.
class ModelImport {
 public:
  explicit ModelImport(TfliteContainer* container) : container_(container) {}

  TfliteContainer& container() { return *container_; }

  // Imports a subgraph as a function on first use. Returns InvalidArgument for a recursive subgraph.
  absl::StatusOr<FunctionRef> FunctionOf(int subgraph);

  // Records an operator that cannot be imported; Finish reports all of them.
  void AddProblem(std::string problem) { problems_.push_back(std::move(problem)); }
  absl::Status Finish(Graph* graph);

 private:
  TfliteContainer* container_;
  absl::flat_hash_map<int, std::string> functions_;  // Names by subgraph.
  absl::flat_hash_set<int> under_way_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  std::vector<std::string> body_names_;
  std::vector<std::string> problems_;
};

// The state of the import of one subgraph.
class SubgraphImport {
 public:
  // Does not own `model` and `graph`.
  SubgraphImport(ModelImport* model, int index, Graph* graph) : model_(model), index_(index), graph_(graph) {}

  // Adds the inputs (Placeholder, or _Arg for a function), the operators and the outputs.
  absl::Status Run(bool is_function);

  Graph& graph() { return *graph_; }
  ModelImport& model() { return *model_; }
  const tflite::SubGraph& subgraph() const { return model_->container().subgraph(index_); }
  const tflite::Tensor& tensor(int i) const { return model_->container().tensor(index_, i); }

  // Returns the tensor in the graph. A constant is added on first use. Returns InvalidArgument for a tensor that no
  // earlier operator computes.
  absl::StatusOr<TensorRef> ValueOf(int tensor);
  // Returns the value of a constant, or null for other tensors.
  absl::StatusOr<const Tensor*> ConstantOf(int tensor);

  // The constants that hold the scales of a quantised tensor, as UniformQuantize and UniformDequantize read them.
  struct Scales {
    TensorRef scales, zero_points;
    int axis = -1;
    int64_t lowest = 0, highest = 0;  // Codes.

    void SetAttrs(Node* node) const;
  };
  // Adds the constants on first use. REQUIRES: IsQuantized(tensor(tensor)). Returns InvalidArgument for scales that are
  // not positive and finite or do not fit the shape, Unimplemented for scales of blocks.
  absl::StatusOr<Scales> ScalesOf(int tensor);
  // Returns the numbers that the codes of a tensor represent. The node is added on first use. Same errors.
  absl::StatusOr<TensorRef> DequantizedOf(int tensor);

  // Returns an unused node name derived from `text`, in which characters that are not allowed are replaced by '_'.
  std::string NodeName(absl::string_view text) const;
  std::string TensorName(int i) const;

 private:
  absl::Status AddInputs(bool is_function);
  absl::Status AddOutputs(bool is_function);
  absl::Status AddOperator(int i);
  // Records an operator that cannot be imported, and continues with placeholders as its results, so that problems of
  // later operators are reported, too.
  absl::Status AddProblem(const tflite::Operator& op, std::string problem);
  // Returns the reason why the operator cannot be imported, or an empty string.
  std::string Obstacle(const tflite::Operator& op) const;

  ModelImport* model_;
  int index_;
  Graph* graph_;
  std::vector<TensorRef> values_;  // By tensor; the node is null for tensors not computed yet.
  absl::flat_hash_map<int, Tensor> constants_;
  absl::flat_hash_map<int, Scales> scales_;
  absl::flat_hash_map<int, TensorRef> dequantized_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_IMPORT_H_

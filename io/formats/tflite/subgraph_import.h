// Imports the subgraphs of a TensorFlow Lite model: the first as a graph, those that operators name as functions.
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

// The model as a graph that declares the inputs and outputs of the first subgraph, in their order. Unimplemented lists
// all operators that have no form in TensorFlow's ops at once, with their tensors' names.
absl::StatusOr<std::unique_ptr<Graph>> ImportTflite(TfliteContainer container);

// What the subgraphs of one model share.
class ModelImport {
 public:
  explicit ModelImport(TfliteContainer* container) : container_(container) {}

  TfliteContainer& container() { return *container_; }

  // Imports a subgraph as a function on first use. InvalidArgument for one that calls itself, directly or not.
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

// One subgraph while it is imported.
class SubgraphImport {
 public:
  // Does not own `model` and `graph`.
  SubgraphImport(ModelImport* model, int index, Graph* graph) : model_(model), index_(index), graph_(graph) {}

  // Adds inputs of the op `input_op` (Placeholder or _Arg), the operators, and the values of the outputs.
  absl::Status Run(bool is_function);

  Graph& graph() { return *graph_; }
  ModelImport& model() { return *model_; }
  const tflite::SubGraph& subgraph() const { return model_->container().subgraph(index_); }
  const tflite::Tensor& tensor(int i) const { return model_->container().tensor(index_, i); }

  // The value of a tensor of the subgraph; a constant gets its node on first use. InvalidArgument for one that nothing
  // has computed yet.
  absl::StatusOr<TensorRef> ValueOf(int tensor);
  // The value of a constant; null for other tensors.
  absl::StatusOr<const Tensor*> ConstantOf(int tensor);

  // A name that no node has, made of `text`, in which other characters than node names may have become '_'.
  std::string NodeName(absl::string_view text) const;
  std::string TensorName(int i) const;

 private:
  absl::Status AddInputs(bool is_function);
  absl::Status AddOutputs(bool is_function);
  absl::Status AddOperator(int i);
  // The reason why the operator cannot be imported; empty if there is none.
  std::string Obstacle(const tflite::Operator& op) const;

  ModelImport* model_;
  int index_;
  Graph* graph_;
  std::vector<TensorRef> values_;  // By tensor; a null node where there is none yet.
  absl::flat_hash_map<int, Tensor> constants_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_IMPORT_H_

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
#include "io/formats/tflite/carried_operator.h"
#include "io/formats/tflite/container.h"

namespace permafrost {

class OperatorImport;
struct OperatorRow;

// Returns the name of a tensor as a node name: characters that node names cannot have are replaced by '_', and the
// suffix
// ":0" of converters is removed.
std::string NodeNameOfTensor(absl::string_view text);

// The nodes that the import of one operator made.
struct OperatorTrace {
  std::vector<Node*> created;  // Includes nodes that operators share, such as constants, at the first that reads them.
  std::vector<TensorRef> inputs, results;  // By operand and result; the node is null for constants and absent ones.
};

// Converts the model to a graph that declares the inputs and outputs of subgraph `entry`, in order. Operators that
// cannot be expressed in TensorFlow's ops become nodes that carry them (carried_operator.h). Returns Unimplemented,
// with a list of all of them, for operators that cannot be carried either. If `trace` is not null, it is set to the
// operators of the subgraph, in order.
absl::StatusOr<std::unique_ptr<Graph>> ImportTflite(TfliteContainer container, int entry = 0,
                                                    std::vector<OperatorTrace>* trace = nullptr);

// State shared by the subgraphs of one model. "The first subgraph" is the one whose graph is made.
class ModelImport {
 public:
  // Does not own `container` and `graph`, the graph of the first subgraph.
  ModelImport(TfliteContainer* container, Graph* graph) : container_(container), graph_(graph) {}

  TfliteContainer& container() { return *container_; }
  Graph& graph() { return *graph_; }

  // Imports a subgraph as a function on first use. Returns InvalidArgument for a recursive subgraph.
  absl::StatusOr<FunctionRef> FunctionOf(int subgraph);
  // True if the function made from a subgraph reads or changes variables or tables. REQUIRES: FunctionOf(subgraph).
  bool IsStateful(int subgraph) const { return stateful_.contains(subgraph); }

  // A resource variable. The model stores its type only with the operators that read or assign it.
  struct Variable {
    DType dtype = DType::kInvalid;       // kInvalid if no operator shows it, or if operators differ.
    Shape shape = Shape::UnknownRank();  // Known if all assigned values have one shape, one of them a constant.
  };
  Variable VariableOf(const tflite::VarHandleOptions& options);

  // Returns the handle of a variable in the graph of the first subgraph; the node is added on first use.
  absl::StatusOr<Node*> AddHandle(const std::string& container, const std::string& shared_name,
                                  const Variable& variable);
  // Same, of a hash table.
  absl::StatusOr<Node*> AddTable(const tflite::HashtableOptions& options);
  // Assigns the initial value of a variable in the graph of the first subgraph. A session runs it before anything else
  // (graph/analysis/variable_initializers.h). A later call replaces an earlier one.
  absl::StatusOr<Node*> AddInitializer(Node* handle, TensorRef value);
  // Adds the operators of a subgraph that a CALL_ONCE names to the graph of the first subgraph, as initialisers.
  absl::Status CallOnce(int subgraph);

  // Records an operator that cannot be imported; Finish reports all of them.
  void AddProblem(std::string problem) { problems_.push_back(std::move(problem)); }
  absl::Status Finish(Graph* graph);

 private:
  void FindVariables();

  TfliteContainer* container_;
  Graph* graph_;
  absl::flat_hash_map<int, std::string> functions_;   // Names by subgraph.
  absl::flat_hash_set<int> stateful_, initializers_;  // Subgraphs.
  bool has_found_variables_ = false;
  absl::flat_hash_map<std::string, Variable> variables_;  // By container and name.
  absl::flat_hash_map<std::string, Node*> handles_;       // By container and name.
  absl::flat_hash_map<int32_t, Node*> tables_;            // By number.
  absl::flat_hash_set<int> under_way_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  std::vector<std::string> body_names_;
  std::vector<std::string> problems_;
};

// The use of a subgraph.
enum class SubgraphRole : uint8_t { kGraph, kFunction, kInitializer };

// The state of the import of one subgraph.
class SubgraphImport {
 public:
  // Does not own `model` and `graph`.
  SubgraphImport(ModelImport* model, int index, SubgraphRole role, Graph* graph)
      : model_(model), index_(index), role_(role), graph_(graph), carrier_(&model->container(), index, graph) {}

  // Records the nodes of each operator. Does not own `trace`.
  void set_trace(std::vector<OperatorTrace>* trace) { trace_ = trace; }

  // Adds the inputs (Placeholder, or _Arg for a function), the operators and the outputs. Operators of an initialiser
  // are added to the model's graph. Returns InvalidArgument for an initialiser with inputs or outputs.
  absl::Status Run();

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

  // --- State ------------------------------------------------------------------------------------------------------
  SubgraphRole role() const { return role_; }
  // True if an operator reads or changes variables or tables.
  bool is_stateful() const { return is_stateful_; }
  // Returns the handle of a resource variable.
  absl::StatusOr<Node*> HandleOf(const std::string& container, const std::string& shared_name,
                                 const ModelImport::Variable& variable);
  // Returns the handle of a hash table.
  absl::StatusOr<Node*> TableOf(const tflite::HashtableOptions& options);
  // Returns the variable that holds a variable tensor (`is_variable`): the state of a recurrent operator. Returns
  // InvalidArgument for other tensors.
  absl::StatusOr<Node*> StateOf(int tensor);
  // Gives a node that reads or changes the resource of a handle its place after earlier operators on the resource, by
  // control inputs. Operators on a handle that is an argument, and calls (`handle` null), keep their place among all.
  void Order(Node* node, const Node* handle, bool changes);

  // Returns an unused node name derived from `text`, in which characters that are not allowed are replaced by '_'.
  std::string NodeName(absl::string_view text) const;
  std::string TensorName(int i) const;

 private:
  absl::Status AddInputs();
  absl::Status AddOutputs();
  // Returns a node that runs after all operators that change resources; null if there are none.
  absl::StatusOr<Node*> AllEffects();
  absl::Status AddOperator(int i);
  absl::Status AddTracedOperator(int i);
  // Records an operator that cannot be imported, and continues with placeholders as its results, so that problems of
  // later operators are reported, too.
  absl::Status AddProblem(const tflite::Operator& op, std::string problem);
  // Returns the reason why the operator is malformed, or an empty string.
  std::string Obstacle(const OperatorRow& row, const tflite::Operator& op) const;
  // True if the operator computes with codes for which there is no kernel.
  bool HasRefusedCodes(const OperatorRow& row, const tflite::Operator& op) const;
  // Adds a node that carries the operator, for `reason`. Removes the nodes of `failed`, an import that has failed,
  // unless it is null; they follow `before`.
  absl::Status AddCarried(const tflite::Operator& op, const std::string& name, const OperatorImport* failed,
                          const Node* before, const std::string& reason);
  // Removes constants that only failed imports read.
  absl::Status RemoveUnread();

  ModelImport* model_;
  int index_;
  SubgraphRole role_;
  Graph* graph_;
  // The operators on one resource that later ones must follow.
  struct Effects {
    Node* last_change = nullptr;
    std::vector<Node*> reads;  // Since then.
  };
  bool is_stateful_ = false;
  Node* barrier_ = nullptr;                            // The last operator on an unknown resource.
  std::vector<const Node*> resources_;                 // The keys of effects_, in order of first use.
  absl::flat_hash_map<const Node*, Effects> effects_;  // By handle; since the barrier.
  absl::flat_hash_map<std::string, Node*> handles_;    // Of a function, by container and name.
  absl::flat_hash_map<int32_t, Node*> tables_;         // Of a function, by number.
  absl::flat_hash_map<int, Node*> states_;             // Handles by tensor.
  std::vector<TensorRef> values_;                      // By tensor; the node is null for tensors not computed yet.
  absl::flat_hash_map<int, Tensor> constants_;
  absl::flat_hash_map<int, Scales> scales_;
  absl::flat_hash_map<int, TensorRef> dequantized_;
  CarriedOperatorMaker carrier_;
  bool has_failed_ = false;  // The import of an operator; it is carried instead.
  std::vector<OperatorTrace>* trace_ = nullptr;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_SUBGRAPH_IMPORT_H_

// Computes the values that initialisers assign.
#include "transforms/freeze/initial_values.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/analysis/order.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

bool IsVariable(const Node& node) {
  return node.op() == ops::kVariable || node.op() == ops::kVariableV2 || node.op() == ops::kVarHandleOp;
}

absl::StatusOr<std::vector<Node*>> FindNodes(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Node*> nodes;
  for (const std::string& name : names) {
    Node* node = graph.Find(absl::StripPrefix(name, "^"));
    if (node == nullptr) {
      std::vector<absl::string_view> candidates;
      for (const Node* other = graph.first(); other != nullptr; other = other->next()) {
        candidates.push_back(other->name());
      }
      return absl::NotFoundError(
          absl::StrCat("there is no initialiser '", name, "' in the graph", DidYouMean(name, candidates)));
    }
    nodes.push_back(node);
  }
  return nodes;
}

// The values of the nodes that `roots` depend on through data inputs, each computed once.
class Values {
 public:
  Values(const Graph& graph, const Evaluator* evaluator) : evaluator_(evaluator), outputs_(graph.id_limit()) {}

  // Evaluates the nodes of `order`, which is topological. A value stays unset if it is not needed or not computable.
  void Compute(const std::vector<Node*>& order, const std::vector<bool>& needed) {
    for (const Node* node : order) {
      if (!needed[node->id()]) continue;
      if (node->op() == ops::kConst) {
        if (absl::StatusOr<Tensor> value = ConstValue(*node); value.ok()) {
          outputs_[node->id()].push_back(*std::move(value));
        }
        continue;
      }
      if (evaluator_ == nullptr || IsVariable(*node) || !evaluator_->Supports(*node).ok()) continue;
      std::vector<Tensor> inputs;
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        if (const Tensor* input = Of(node->input(i)); input != nullptr) inputs.push_back(*input);
      }
      if (static_cast<int>(inputs.size()) != node->num_data_inputs()) continue;
      absl::StatusOr<std::vector<Tensor>> outputs = evaluator_->Evaluate(*node, inputs);
      if (outputs.ok()) outputs_[node->id()] = *std::move(outputs);
    }
  }

  const Tensor* Of(TensorRef ref) const {
    const std::vector<Tensor>& outputs = outputs_[ref.node->id()];
    return static_cast<size_t>(ref.port) < outputs.size() ? &outputs[ref.port] : nullptr;
  }

 private:
  const Evaluator* evaluator_;
  std::vector<std::vector<Tensor>> outputs_;  // By node id.
};

}  // namespace

absl::StatusOr<InitialValues> InitialValues::Of(const Graph& graph, const std::vector<std::string>& initializers,
                                                const Evaluator* evaluator) {
  InitialValues values;
  if (initializers.empty()) return values;
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> roots, FindNodes(graph, initializers));
  const std::vector<bool> runs = ReachedBackwards(graph, roots, {});
  std::vector<Node*> sources;
  std::vector<const Node*> assigns;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!runs[node->id()] || node->num_data_inputs() < 2) continue;
    if (node->op() != ops::kAssign && node->op() != ops::kAssignVariableOp) continue;
    if (!IsVariable(*node->input(0).node)) continue;
    assigns.push_back(node);
    sources.push_back(node->input(1).node);
  }
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(graph));
  Values computed(graph, evaluator);
  computed.Compute(order, ReachedBackwards(graph, sources, {}));
  for (const Node* assign : assigns) {
    const Node* variable = assign->input(0).node;
    const Tensor* value = computed.Of(assign->input(1));
    if (value == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          assign->Describe(), ": the initial value of variable '", variable->name(), "' cannot be computed, since ",
          assign->input(1).node->Describe(), " is not known without running the graph"));
    }
    if (!values.values_.emplace(std::string(variable->name()), *value).second) {
      return absl::FailedPreconditionError(
          absl::StrCat("the initialisers give variable '", variable->name(), "' more than one value"));
    }
  }
  return values;
}

}  // namespace permafrost

// Decides which assignments the outputs need, from the data that they read.
#include "transforms/freeze/assignments.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Returns whether a control edge from the node is more than an order: the node has an effect, or combines control
// edges.
bool ActsForReaders(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  return schema == nullptr || node.op() == ops::kNoOp || schema->Is(kHasSideEffect | kControlFlow);
}

// The nodes that the outputs read or that act before them, without assignments.
class Reached {
 public:
  explicit Reached(const Graph& graph) : reached_(graph.id_limit(), false) {}

  bool operator[](const Node* node) const { return reached_[node->id()]; }

  void Add(Node* root) {
    std::vector<Node*> open;
    const auto visit = [&](Node* node) {
      if (reached_[node->id()]) return;
      reached_[node->id()] = true;
      open.push_back(node);
    };
    visit(root);
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      for (int i = 0; i < node->num_inputs(); ++i) {
        const TensorRef input = node->input(i);
        if (!input.is_control() || (ActsForReaders(*input.node) && !IsAssignment(input.node->op()))) visit(input.node);
      }
    }
  }

 private:
  std::vector<bool> reached_;
};

// Returns the variable that an assignment changes; null unless its handle comes straight from a node of the graph.
const Node* VariableOf(const Node& assignment) {
  if (assignment.num_data_inputs() == 0) return nullptr;
  const Node* node = assignment.input(0).node;
  // Bounded, since the graph may have cycles.
  for (int steps = 0; steps < 100 && node->op() == ops::kIdentity && node->num_data_inputs() == 1; ++steps) {
    node = node->input(0).node;
  }
  return node->op() == ops::kVarHandleOp ? node : nullptr;
}

}  // namespace

bool IsAssignment(Op op) {
  return op == ops::kAssignVariableOp || op == ops::kAssignAddVariableOp || op == ops::kAssignSubVariableOp ||
         op == ops::kRngSkip || absl::StartsWith(op.name(), "ResourceScatter") ||
         absl::StartsWith(op.name(), "ResourceApply");
}

void DropAssignment(Graph* graph, Node* assignment) {
  for (int i = assignment->num_data_inputs() - 1; i >= 0; --i) graph->RemoveInput(assignment, i);
  assignment->ClearAttrs();
  assignment->set_op(ops::kNoOp);
}

void DropUnreadAssignments(Graph* graph) {
  std::vector<Node*> undecided;
  for (Node* node : graph->Nodes()) {
    if (IsAssignment(node->op()) && !graph->IsEndpoint(node)) undecided.push_back(node);
  }
  if (undecided.empty()) return;
  Reached reached(*graph);
  for (const Endpoint& output : graph->outputs()) reached.Add(output.node);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    std::vector<Node*> unread;
    for (Node* assignment : undecided) {
      const Node* variable = VariableOf(*assignment);
      if (variable != nullptr && !reached[variable]) {
        unread.push_back(assignment);
        continue;
      }
      reached.Add(assignment);
      has_changed = true;
    }
    undecided = std::move(unread);
  }
  for (Node* assignment : undecided) DropAssignment(graph, assignment);
  // A control edge from a reader of such a variable would keep the variable.
  for (Node* node : graph->Nodes()) {
    if (node->op() != ops::kReadVariableOp || reached[node]) continue;
    const std::vector<Use> uses(node->uses().begin(), node->uses().end());
    for (auto use = uses.rbegin(); use != uses.rend(); ++use) {
      if (use->consumer->input(static_cast<int>(use->index)).is_control()) {
        graph->RemoveInput(use->consumer, static_cast<int>(use->index));
      }
    }
  }
}

absl::Status AddInitializer(Graph* graph, Node* variable, Tensor value) {
  const DType dtype = value.dtype();
  Node* const position = variable->next();
  PF_ASSIGN_OR_RETURN(
      Node* const constant,
      graph->AddConst(graph->UniqueName(absl::StrCat(variable->name(), "/Initializer")), std::move(value), position));
  PF_ASSIGN_OR_RETURN(Node* const assignment, graph->AddNode(graph->UniqueName(VariableInitializerName(*variable)),
                                                             ops::kAssignVariableOp, position));
  assignment->SetAttr("dtype", AttrValue::Type(dtype));
  graph->AddInput(assignment, {variable, 0});
  graph->AddInput(assignment, {constant, 0});
  return absl::OkStatus();
}

}  // namespace permafrost

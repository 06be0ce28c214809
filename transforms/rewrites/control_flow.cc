// Builds the Switch and Merge nodes around branches, and the frame around a loop.
#include "transforms/rewrites/control_flow.h"

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"

namespace permafrost {
namespace {

// Adds nodes before a given node, with names derived from it.
class Builder {
 public:
  Builder(Graph* graph, Node* at) : graph_(graph), at_(at), prefix_(absl::StrCat(at->name(), "/")) {}

  const std::string& prefix() const { return prefix_; }

  absl::StatusOr<Node*> Add(absl::string_view name, Op op, DType type, const std::vector<TensorRef>& inputs) {
    PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(graph_->UniqueName(absl::StrCat(prefix_, name)), op, at_));
    if (type != DType::kInvalid) node->SetAttr("T", AttrValue::Type(type));
    for (const TensorRef& input : inputs) graph_->AddInput(node, input);
    node->set_device(at_->device());
    return node;
  }

  absl::StatusOr<Node*> AddIdentity(absl::string_view name, DType type, TensorRef input,
                                    const std::vector<Node*>& controls) {
    PF_ASSIGN_OR_RETURN(Node * node, Add(name, ops::kIdentity, type, {input}));
    for (Node* control : controls) {
      if (control != input.node) graph_->AddInput(node, {control, kControlPort});
    }
    return node;
  }

  absl::StatusOr<Node*> AddMerge(absl::string_view name, DType type, const std::vector<TensorRef>& inputs, int count) {
    PF_ASSIGN_OR_RETURN(Node * node, Add(name, ops::kMerge, type, inputs));
    node->SetAttr("N", AttrValue::Int(count));
    return node;
  }

 private:
  Graph* graph_;
  Node* at_;
  std::string prefix_;
};

// Passes arguments of the node to branches through one Switch for each predicate and argument.
class Arguments {
 public:
  Arguments(Node* node, const std::vector<DType>& types, Builder* builder)
      : node_(node), types_(types), builder_(builder) {}

  // Returns the inputs of `branch`; arguments that its body does not use have no node.
  absl::StatusOr<std::vector<TensorRef>> For(const Branch& branch) {
    const std::vector<Node*> params = ArgsOf(*branch.body->graph);
    std::vector<TensorRef> args(params.size());
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i]->uses().empty() && !branch.body->graph->IsOutput(params[i])) continue;
      Node*& made = switches_[{branch.predicate, i}];
      if (made == nullptr) {
        PF_ASSIGN_OR_RETURN(made, builder_->Add(absl::StrCat("Switch_", i), ops::kSwitch, types_[i],
                                                {node_->input(static_cast<int>(i) + 1), branch.predicate}));
      }
      args[i] = {made, branch.side};
    }
    return args;
  }

 private:
  Node* node_;
  const std::vector<DType>& types_;
  Builder* builder_;
  absl::flat_hash_map<std::pair<TensorRef, size_t>, Node*> switches_;
};

}  // namespace

bool IsBoolLike(DType type) {
  return type == DType::kBool || (IsFloating(type) && SizeOf(type) > 0) ||
         DispatchOn<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(type, [](auto) {});
}

absl::StatusOr<TensorRef> AsBool(Graph* graph, Node* node, TensorRef ref, DType type, Node* gate) {
  if (type == DType::kBool) return ref;
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor zero, Tensor::Allocate(type, Shape(), &data));
  std::memset(data, 0, SizeOf(type));
  const std::string name = graph->UniqueName(absl::StrCat(node->name(), "/zero"));
  PF_ASSIGN_OR_RETURN(Node * constant, graph->AddConst(name, std::move(zero), node));
  if (gate != nullptr) graph->AddInput(constant, {gate, kControlPort});
  PF_ASSIGN_OR_RETURN(Node * is_true, Builder(graph, node).Add("is_true", ops::kNotEqual, type, {ref, {constant, 0}}));
  return TensorRef{is_true, 0};
}

absl::StatusOr<std::vector<Node*>> LowerBranches(Graph* graph, Node* node, const std::vector<Branch>& branches,
                                                 CopyBudget* budget) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> arg_types, TypeListAttr(*node, "Tin"));
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, TypeListAttr(*node, "Tout"));
  for (const Branch& branch : branches) {
    PF_RETURN_IF_ERROR(CheckTypes(*node, "Tin", ArgsOf(*branch.body->graph)));
    PF_RETURN_IF_ERROR(CheckTypes(*node, "Tout", RetvalsOf(*branch.body->graph)));
  }
  if (node->num_data_inputs() != static_cast<int>(arg_types.size()) + 1) {
    return absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": has ", node->num_data_inputs() - 1,
                                                   " arguments, but the function takes ", arg_types.size()));
  }
  Builder builder(graph, node);
  Arguments arguments(node, arg_types, &builder);
  absl::flat_hash_map<TensorRef, Node*> pivots;
  std::vector<Node*> copied;
  std::vector<std::vector<TensorRef>> values(types.size());  // By output, then by branch.
  std::vector<TensorRef> ends;  // By branch: a tensor that is available once the branch has run.
  for (const Branch& branch : branches) {
    Node*& both = pivots[branch.predicate];
    if (both == nullptr) {
      PF_ASSIGN_OR_RETURN(both,
                          builder.Add("Switch", ops::kSwitch, DType::kBool, {branch.predicate, branch.predicate}));
    }
    PF_ASSIGN_OR_RETURN(Node * pivot, builder.AddIdentity(branch.label, DType::kBool, {both, branch.side}, {}));
    PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> args, arguments.For(branch));
    PF_ASSIGN_OR_RETURN(const BodyCopy copy,
                        CopyBody(*branch.body->graph, absl::StrCat(builder.prefix(), branch.label, "/"), args, pivot,
                                 Gating::kInputless, budget, graph, node));
    const std::vector<Node*> pending = PendingControls(*branch.body->graph, copy);
    for (size_t k = 0; k < types.size(); ++k) {
      TensorRef value = copy.outputs[k];
      if (!pending.empty()) {
        const std::string name = absl::StrCat(branch.label, "/output_", k);
        PF_ASSIGN_OR_RETURN(Node * waits, builder.AddIdentity(name, types[k], value, pending));
        value = {waits, 0};
      }
      values[k].push_back(value);
    }
    if (types.empty()) {
      PF_ASSIGN_OR_RETURN(Node * end, builder.AddIdentity(absl::StrCat(branch.label, "/end"), DType::kBool, {pivot, 0},
                                                          copy.control_outputs));
      ends.push_back({end, 0});
    }
    copied.insert(copied.end(), copy.nodes.begin(), copy.nodes.end());
  }
  Replacement replacement;
  const int count = static_cast<int>(branches.size());
  for (size_t k = 0; k < types.size(); ++k) {
    PF_ASSIGN_OR_RETURN(Node * merge, builder.AddMerge(absl::StrCat("Merge_", k), types[k], values[k], count));
    replacement.outputs.push_back({merge, 0});
  }
  if (types.empty()) {
    PF_ASSIGN_OR_RETURN(Node * merge, builder.AddMerge("Merge", DType::kBool, ends, count));
    replacement.done.push_back(merge);
  }
  replacement.types = types;
  PF_RETURN_IF_ERROR(ReplaceCall(graph, node, std::move(replacement)));
  return copied;
}

absl::StatusOr<std::vector<Node*>> LowerLoop(Graph* graph, Node* node, const CallInlining::Body& condition,
                                             const CallInlining::Body& body, CopyBudget* budget) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, TypeListAttr(*node, "T"));
  PF_RETURN_IF_ERROR(CheckTypes(*node, "T", ArgsOf(*condition.graph)));
  const std::vector<Node*> params = ArgsOf(*body.graph), returns = RetvalsOf(*body.graph);
  PF_RETURN_IF_ERROR(CheckTypes(*node, "T", params));
  PF_RETURN_IF_ERROR(CheckTypes(*node, "T", returns));
  const std::vector<Node*> verdicts = RetvalsOf(*condition.graph);
  const size_t size = types.size();
  if (verdicts.size() != 1 || size == 0 || node->num_data_inputs() != static_cast<int>(size)) {
    return absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": has ", node->num_data_inputs(),
                                                   " inputs and a condition of ", verdicts.size(),
                                                   " outputs, expected ", size, " and 1"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t parallel_iterations, IntAttr(*node, "parallel_iterations"));
  const bool has_effect = condition.has_effect || body.has_effect;

  // At least one variable must change, so that nodes can wait for it in each iteration.
  std::vector<bool> is_constant(size);
  bool has_constant = false, has_variable = false;
  for (size_t i = 0; i < size; ++i) {
    is_constant[i] = returns[i]->input(0).node == params[i] && (has_variable || i + 1 < size);
    has_constant |= is_constant[i];
    has_variable |= !is_constant[i];
  }

  Builder builder(graph, node);
  const std::string frame = absl::StrCat(builder.prefix(), "frame");
  PF_ASSIGN_OR_RETURN(Node * gate, ControlGate(graph, node));
  std::vector<TensorRef> now(size);  // Inputs of the condition.
  std::vector<Node*> merges(size, nullptr);
  Node* first = nullptr;
  for (size_t i = 0; i < size; ++i) {
    PF_ASSIGN_OR_RETURN(Node * enter, builder.Add(absl::StrCat("Enter_", i), ops::kEnter, types[i],
                                                  {node->input(static_cast<int>(i))}));
    enter->SetAttr("frame_name", AttrValue::String(frame));
    enter->SetAttr("is_constant", AttrValue::Bool(is_constant[i]));
    enter->SetAttr("parallel_iterations", AttrValue::Int(parallel_iterations));
    if (gate != nullptr) graph->AddControlInput(enter, gate);
    now[i] = {enter, 0};
    if (is_constant[i]) continue;
    PF_ASSIGN_OR_RETURN(merges[i], builder.AddMerge(absl::StrCat("Merge_", i), types[i], {now[i]}, 2));
    now[i] = {merges[i], 0};
    if (first == nullptr) first = merges[i];
  }

  // Constants of a frame are available in every iteration, so nodes that read only them wait for a value that changes.
  const Gating gating = has_constant ? Gating::kBoth : Gating::kInputless;
  PF_ASSIGN_OR_RETURN(BodyCopy verdict, CopyBody(*condition.graph, absl::StrCat(builder.prefix(), "cond/"), now, first,
                                                 gating, budget, graph, node));
  PF_ASSIGN_OR_RETURN(const DType verdict_type, TypeAttr(*verdicts[0], "T"));
  PF_ASSIGN_OR_RETURN(const TensorRef goes_on, AsBool(graph, node, verdict.outputs[0], verdict_type, first));
  PF_ASSIGN_OR_RETURN(Node * loop_cond, builder.Add("LoopCond", ops::kLoopCond, DType::kInvalid, {goes_on}));
  for (Node* control : PendingControls(*condition.graph, verdict)) graph->AddControlInput(loop_cond, control);

  Replacement replacement;
  replacement.types = types;
  Node* pivot = nullptr;
  for (size_t i = 0; i < size; ++i) {
    if (is_constant[i]) {
      replacement.outputs.push_back(node->input(static_cast<int>(i)));
      continue;
    }
    PF_ASSIGN_OR_RETURN(Node * choice,
                        builder.Add(absl::StrCat("Switch_", i), ops::kSwitch, types[i], {now[i], {loop_cond, 0}}));
    PF_ASSIGN_OR_RETURN(Node * exit, builder.Add(absl::StrCat("Exit_", i), ops::kExit, types[i], {{choice, 0}}));
    PF_ASSIGN_OR_RETURN(Node * inside, builder.AddIdentity(absl::StrCat("Identity_", i), types[i], {choice, 1}, {}));
    now[i] = {inside, 0};
    if (pivot == nullptr) pivot = inside;
    replacement.outputs.push_back({exit, 0});
    replacement.done.push_back(exit);
    if (has_effect) replacement.pending.push_back(exit);
  }
  if (!has_constant) replacement.pending.clear();  // Each output is available only after the loop.
  PF_ASSIGN_OR_RETURN(BodyCopy step, CopyBody(*body.graph, absl::StrCat(builder.prefix(), "body/"), now, pivot, gating,
                                              budget, graph, node));
  const std::vector<Node*> pending = PendingControls(*body.graph, step);
  for (size_t i = 0; i < size; ++i) {
    if (is_constant[i]) continue;
    TensorRef value = step.outputs[i];
    if (!pending.empty()) {
      PF_ASSIGN_OR_RETURN(Node * waits, builder.AddIdentity(absl::StrCat("output_", i), types[i], value, pending));
      value = {waits, 0};
    }
    PF_ASSIGN_OR_RETURN(Node * next,
                        builder.Add(absl::StrCat("NextIteration_", i), ops::kNextIteration, types[i], {value}));
    graph->AddInput(merges[i], {next, 0});
  }
  std::vector<Node*> copied = std::move(verdict.nodes);
  copied.insert(copied.end(), step.nodes.begin(), step.nodes.end());
  PF_RETURN_IF_ERROR(ReplaceCall(graph, node, std::move(replacement)));
  return copied;
}

}  // namespace permafrost

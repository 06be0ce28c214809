// Finds every tensor that refers to a variable, then converts the nodes that read these tensors to use values.
#include "transforms/freeze/value_flow.h"

#include <algorithm>
#include <map>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/freeze/assignments.h"
#include "transforms/rewrites/call_inlining.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

// Maximum depth of nested functions. Also ends recursion.
constexpr int kMostDepth = 64;

bool IsVariable(const Node& node) {
  return node.op() == ops::kVariable || node.op() == ops::kVariableV2 || node.op() == ops::kVarHandleOp;
}

bool IsCall(const Node& node) {
  for (const Op op : {ops::kPartitionedCall, ops::kStatefulPartitionedCall, ops::kIf, ops::kStatelessIf, ops::kCase,
                      ops::kStatelessCase, ops::kWhile, ops::kStatelessWhile}) {
    if (node.op() == op) return true;
  }
  return false;
}

bool IsWhile(const Node& node) { return node.op() == ops::kWhile || node.op() == ops::kStatelessWhile; }

// Returns the index of the first data input that is passed to the functions.
int FirstArg(const Node& node) {
  const Op op = node.op();
  return op == ops::kIf || op == ops::kStatelessIf || op == ops::kCase || op == ops::kStatelessCase ? 1 : 0;
}

// Returns true for ops that pass their inputs on, and sets *for_values to the equivalent op for values.
bool HandsOn(Op op, Op* for_values) {
  constexpr struct {
    ops::OpId op, for_values;
  } kOps[] = {{ops::kIdentity, ops::kIdentity},
              {ops::kRefIdentity, ops::kIdentity},
              {ops::kEnter, ops::kEnter},
              {ops::kRefEnter, ops::kEnter},
              {ops::kExit, ops::kExit},
              {ops::kRefExit, ops::kExit},
              {ops::kNextIteration, ops::kNextIteration},
              {ops::kRefNextIteration, ops::kNextIteration},
              {ops::kSwitch, ops::kSwitch},
              {ops::kRefSwitch, ops::kSwitch},
              {ops::kMerge, ops::kMerge},
              {ops::kRefMerge, ops::kMerge}};
  for (const auto& row : kOps) {
    if (op != row.op) continue;
    *for_values = row.for_values;
    return true;
  }
  return false;
}

absl::Status Refusal(const Node& node, const FrozenTensor& value) {
  const OpSchema* schema = FindSchema(node.op());
  const bool assigns = schema != nullptr && schema->Is(kHasSideEffect);
  return absl::FailedPreconditionError(absl::StrCat(
      node.Describe(), assigns ? ": changes variable '" : ": uses the handle of variable '", value.variable,
      "', which freezing makes a constant; choose outputs that do not need the node, or leave the variable as it is"));
}

}  // namespace

// Freezes one graph, or the body of one function.
class ValueFlow::Pass {
 public:
  Pass(ValueFlow* flow, Graph* graph) : flow_(flow), graph_(graph), has_control_flow_(HasControlFlow(*graph)) {}

  absl::Status AddVariables(int64_t* count) {
    for (Node* node : graph_->Nodes()) {
      if (!IsVariable(*node)) continue;
      PF_ASSIGN_OR_RETURN(const Tensor* value, flow_->lookup_(*node));
      if (value == nullptr) continue;
      FrozenTensor frozen{value->dtype(), value->shape(), std::string(node->name()), node->op() == ops::kVarHandleOp};
      Add({node, 0}, frozen);
      variables_.emplace_back(node, *value);
      ++*count;
    }
    return absl::OkStatus();
  }

  // Functions may have variables of their own.
  void AddCalls() {
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
      if (IsCall(*node)) calls_.emplace(node->id(), node);
    }
  }

  void AddArgs(const FrozenArgs& args) {
    const std::vector<Node*> nodes = ArgsOf(*graph_);
    for (const auto& [index, frozen] : args) {
      if (static_cast<size_t>(index) >= nodes.size()) continue;
      Add({nodes[index], 0}, frozen);
      args_.emplace_back(nodes[index], frozen.dtype);
    }
  }

  // Propagates values to a fixed point, then edits.
  absl::Status Run() {
    while (!waiting_.empty() || !calls_.empty()) {
      if (!waiting_.empty()) {
        const TensorRef ref = waiting_.back();
        waiting_.pop_back();
        PF_RETURN_IF_ERROR(Follow(ref));
        continue;
      }
      Node* call = calls_.begin()->second;
      calls_.erase(calls_.begin());
      PF_RETURN_IF_ERROR(FollowCall(call));
    }
    return flow_->changed_ != nullptr ? absl::OkStatus() : Edit();
  }

  std::vector<std::pair<int, FrozenTensor>> Outputs() const {
    std::vector<std::pair<int, FrozenTensor>> outputs;
    const std::vector<Node*> retvals = RetvalsOf(*graph_);
    for (size_t i = 0; i < retvals.size(); ++i) {
      const auto found = frozen_.find(retvals[i]->input(0));
      if (found != frozen_.end() && found->second.is_handle) outputs.emplace_back(static_cast<int>(i), found->second);
    }
    return outputs;
  }

  bool is_changed() const { return !frozen_.empty() || !retargets_.empty(); }

 private:
  absl::Status Refuse(const Node& node, const FrozenTensor& frozen) const {
    if (flow_->changed_ == nullptr || !frozen.is_handle) return Refusal(node, frozen);
    flow_->changed_->insert(frozen.variable);
    return absl::OkStatus();
  }

  void Add(TensorRef ref, const FrozenTensor& frozen) {
    const auto [entry, is_new] = frozen_.emplace(ref, frozen);
    if (is_new) {
      waiting_.push_back(ref);
    } else if (entry->second.shape != frozen.shape) {
      entry->second.shape = Shape::UnknownRank();
    }
  }

  absl::Status Follow(TensorRef ref) {
    const FrozenTensor frozen = frozen_.at(ref);
    for (const Use& use : graph_->UsesOf(ref)) {
      PF_RETURN_IF_ERROR(FollowUse(use.consumer, static_cast<int>(use.index), frozen));
    }
    return absl::OkStatus();
  }

  absl::Status FollowUse(Node* node, int index, const FrozenTensor& frozen) {
    const Op op = node->op();
    Op for_values;
    if (HandsOn(op, &for_values) && (index == 0 || op == ops::kMerge || op == ops::kRefMerge)) {
      // An op for values that reads a reference already returns a value.
      if (!frozen.is_handle && op == for_values) return absl::OkStatus();
      touched_.insert(node);
      Add({node, 0}, frozen);
      if (for_values == ops::kSwitch) Add({node, 1}, frozen);
      return absl::OkStatus();
    }
    if (op == ops::kVarIsInitializedOp || op == ops::kIsVariableInitialized) {
      touched_.insert(node);
      return absl::OkStatus();
    }
    if (!frozen.is_handle) {
      const OpSchema* schema = FindSchema(op);
      const bool changes = schema != nullptr && schema->Is(kHasSideEffect) && index < int(schema->inputs.size()) &&
                           absl::StrContains(kReferences, absl::StrCat(" ", schema->inputs[index].name, " "));
      return changes ? Refuse(*node, frozen) : absl::OkStatus();
    }
    if (flow_->drops_assignments_ && index == 0 && (IsAssignment(op) || op == ops::kRngReadAndSkip)) {
      touched_.insert(node);
      return absl::OkStatus();
    }
    if (op == ops::kReadVariableOp || op == ops::kResourceGather || op == ops::kResourceGatherNd) {
      PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*node, "dtype"));
      if (index != 0) return Refuse(*node, frozen);
      if (dtype != frozen.dtype) {
        return absl::FailedPreconditionError(absl::StrCat(node->Describe(), ": reads variable '", frozen.variable,
                                                          "' as ", DTypeName(dtype), ", but its value is ",
                                                          DTypeName(frozen.dtype)));
      }
      touched_.insert(node);
      return absl::OkStatus();
    }
    if (op == ops::kVariableShape || op == ops::k_Retval) {
      touched_.insert(node);
      return absl::OkStatus();
    }
    if (op == ops::kIdentityN) {
      touched_.insert(node);
      Add({node, index}, frozen);
      return absl::OkStatus();
    }
    if (IsCall(*node) && index >= FirstArg(*node)) {
      calls_.emplace(node->id(), node);
      return absl::OkStatus();
    }
    return Refuse(*node, frozen);
  }

  FrozenArgs ArgsOfCall(const Node& node) const {
    FrozenArgs args;
    const int first = FirstArg(node);
    for (int i = first; i < node.num_data_inputs(); ++i) {
      const auto found = frozen_.find(node.input(i));
      if (found != frozen_.end() && found->second.is_handle) args.emplace_back(i - first, found->second);
    }
    return args;
  }

  // Returns the attributes that name functions, with the functions.
  static absl::StatusOr<std::vector<std::pair<absl::string_view, std::vector<FunctionRef>>>> FunctionsOf(
      const Node& node) {
    std::vector<std::pair<absl::string_view, std::vector<FunctionRef>>> functions;
    for (const absl::string_view key : {"f", "then_branch", "else_branch", "cond", "body", "branches"}) {
      const AttrValue* attr = node.FindAttr(key);
      if (attr == nullptr) continue;
      const std::string place = absl::StrCat(node.Describe(), ": attr '", key, "'");
      std::vector<FunctionRef> named;
      if (key == "branches") {
        absl::StatusOr<std::vector<FunctionRef>> list = attr->AsFunctionList();
        PF_RETURN_IF_ERROR(Annotate(list.status(), place));
        named = *std::move(list);
      } else {
        absl::StatusOr<FunctionRef> function = attr->AsFunction();
        PF_RETURN_IF_ERROR(Annotate(function.status(), place));
        named.push_back(*std::move(function));
      }
      functions.emplace_back(key, std::move(named));
    }
    return functions;
  }

  absl::Status FollowCall(Node* node) {
    const FrozenArgs args = ArgsOfCall(*node);
    PF_ASSIGN_OR_RETURN(const auto functions, FunctionsOf(*node));
    Retarget& retarget = retargets_[node];
    retarget.functions.clear();
    bool is_same = args.empty();
    if (IsWhile(*node)) {
      // A loop variable has the same kind in every iteration.
      for (const auto& [index, frozen] : args) Add({node, index}, frozen);
    }
    for (const auto& [key, named] : functions) {
      std::vector<FunctionRef> twins;
      for (const FunctionRef& function : named) {
        PF_ASSIGN_OR_RETURN(const Twin* twin, flow_->TwinOf(*node, function, args));
        twins.push_back(twin->function);
        is_same &= !twin->is_changed;
        if (IsWhile(*node)) {
          if (key == "body") PF_RETURN_IF_ERROR(CheckLoop(*node, args, twin->outputs));
          continue;
        }
        for (const auto& [index, frozen] : twin->outputs) Add({node, index}, frozen);
      }
      retarget.functions.emplace_back(std::string(key), std::move(twins));
    }
    if (is_same) retargets_.erase(node);
    return absl::OkStatus();
  }

  static absl::Status CheckLoop(const Node& node, const FrozenArgs& args, const FrozenArgs& outputs) {
    for (const auto& [index, frozen] : args) {
      const auto same = [i = index](const auto& output) { return output.first == i; };
      const auto output = std::find_if(outputs.begin(), outputs.end(), same);
      if (output == outputs.end() || output->second.dtype != frozen.dtype) {
        return absl::FailedPreconditionError(absl::StrCat(node.Describe(), ": variable '", frozen.variable,
                                                          "' is loop variable ", index,
                                                          ", and the body does not return it"));
      }
    }
    return absl::OkStatus();
  }

  // --- Editing -------------------------------------------------------------------------------------------------------

  absl::Status Edit() {
    for (const auto& [node, dtype] : args_) EditArg(node, dtype);
    // In the order of the graph, so that new names do not depend on a hash.
    std::vector<Node*> nodes;
    for (Node* node : graph_->Nodes()) {
      if (touched_.contains(node) || retargets_.contains(node)) nodes.push_back(node);
    }
    for (Node* node : nodes) PF_RETURN_IF_ERROR(touched_.contains(node) ? EditNode(node) : EditCall(node));
    for (auto& [node, value] : variables_) {
      BecomeConst(node, std::move(value));
    }
    return absl::OkStatus();
  }

  static void EditArg(Node* arg, DType dtype) {
    arg->SetAttr("T", AttrValue::Type(dtype));
    for (const absl::string_view key : {"_output_shapes", "_handle_dtypes", "_handle_shapes"}) arg->RemoveAttr(key);
  }

  // Removes the control inputs of a constant, which is always available. In V1 control flow they are kept, since they
  // place the node in its frame and branch.
  void DropControls(Node* node) const {
    if (has_control_flow_) return;
    for (int i = node->num_inputs() - 1; i >= node->num_data_inputs(); --i) graph_->RemoveInput(node, i);
  }

  void BecomeConst(Node* node, Tensor value) const {
    node->ClearAttrs();
    node->set_extra_fields("");
    node->set_op(ops::kConst);
    node->SetAttr("dtype", AttrValue::Type(value.dtype()));
    node->SetAttr("value", AttrValue::OfTensor(std::move(value)));
  }

  // Keeps only the given attributes and those that place or annotate a node. The others follow from the op.
  static void KeepOnly(Node* node, std::initializer_list<absl::string_view> keys) {
    std::vector<std::pair<std::string, AttrValue>> kept;
    for (const Attr& attr : node->attrs()) {
      if (std::find(keys.begin(), keys.end(), attr.key) != keys.end()) kept.emplace_back(attr.key, attr.value);
    }
    node->ClearAttrs();
    for (auto& [key, value] : kept) node->SetAttr(key, std::move(value));
  }

  absl::Status EditNode(Node* node) {
    const auto found = node->num_data_inputs() > 0 ? frozen_.find(node->input(0)) : frozen_.end();
    Op for_values;
    if (HandsOn(node->op(), &for_values)) {
      PF_RETURN_IF_ERROR(CheckInputs(*node));
      node->set_op(for_values);
      node->SetAttr("T", AttrValue::Type(frozen_.at({node, 0}).dtype));
      node->RemoveAttr("_output_shapes");
      return absl::OkStatus();
    }
    if (IsAssignment(node->op())) {
      DropAssignment(graph_, node);
      return absl::OkStatus();
    }
    if (node->op() == ops::kRngReadAndSkip) {
      for (int i = node->num_data_inputs() - 1; i > 0; --i) graph_->RemoveInput(node, i);
    }
    switch (found == frozen_.end() ? ops::kIdentityN : IdOf(node->op())) {
      case ops::kRngReadAndSkip:
      case ops::kReadVariableOp:
        KeepOnly(node, {kColocationAttr, "_output_shapes"});
        node->set_op(ops::kIdentity);
        node->SetAttr("T", AttrValue::Type(found->second.dtype));
        DropControls(node);
        return absl::OkStatus();
      case ops::kResourceGather:
        return EditGather(node, found->second.dtype);
      case ops::kResourceGatherNd:
        KeepOnly(node, {kColocationAttr, "_output_shapes", "Tindices"});
        node->set_op(ops::kGatherNd);
        node->SetAttr("Tparams", AttrValue::Type(found->second.dtype));
        DropControls(node);
        return absl::OkStatus();
      case ops::kVariableShape: {
        PF_ASSIGN_OR_RETURN(const DType out_type, TypeAttr(*node, "out_type"));
        KeepOnly(node, {kColocationAttr, "_output_shapes"});
        node->set_op(ops::kShape);
        node->SetAttr("T", AttrValue::Type(found->second.dtype));
        node->SetAttr("out_type", AttrValue::Type(out_type));
        DropControls(node);
        return absl::OkStatus();
      }
      case ops::kVarIsInitializedOp:
      case ops::kIsVariableInitialized: {
        PF_ASSIGN_OR_RETURN(Tensor yes, Tensor::FromBytes(DType::kBool, {}, absl::string_view("\1", 1), nullptr));
        graph_->RemoveInput(node, 0);
        if (has_control_flow_) graph_->AddControlInput(node, found->first.node);
        BecomeConst(node, std::move(yes));
        return absl::OkStatus();
      }
      case ops::k_Retval:
        node->SetAttr("T", AttrValue::Type(found->second.dtype));
        return absl::OkStatus();
      default:
        break;
    }
    if (node->op() != ops::kIdentityN) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(std::vector<DType> types, TypeListAttr(*node, "T"));
    for (int i = 0; i < node->num_data_inputs() && static_cast<size_t>(i) < types.size(); ++i) {
      const auto input = frozen_.find(node->input(i));
      if (input != frozen_.end() && input->second.is_handle) types[i] = input->second.dtype;
    }
    node->SetAttr("T", AttrValue::TypeList(types));
    node->RemoveAttr("_output_shapes");
    return absl::OkStatus();
  }

  static ops::OpId IdOf(Op op) {
    for (const ops::OpId id :
         {ops::kReadVariableOp, ops::kRngReadAndSkip, ops::kResourceGather, ops::kResourceGatherNd, ops::kVariableShape,
          ops::kVarIsInitializedOp, ops::kIsVariableInitialized, ops::k_Retval}) {
      if (op == id) return id;
    }
    return ops::kIdentityN;
  }

  // Checks that all merged inputs are values of one type.
  absl::Status CheckInputs(const Node& node) const {
    if (node.op() != ops::kMerge && node.op() != ops::kRefMerge) return absl::OkStatus();
    const FrozenTensor& output = frozen_.at({const_cast<Node*>(&node), 0});
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      const auto input = frozen_.find(node.input(i));
      if (input == frozen_.end() || input->second.dtype != output.dtype) {
        return absl::FailedPreconditionError(absl::StrCat(node.Describe(), ": variable '", output.variable,
                                                          "' is merged with ", node.input(i).node->Describe(),
                                                          ", which has another type"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status EditGather(Node* node, DType dtype) {
    const int64_t batch_dims = IntAttr(*node, "batch_dims").value_or(0);
    if (batch_dims < 0 || batch_dims > INT32_MAX) {
      return absl::FailedPreconditionError(
          absl::StrCat(node->Describe(), ": attr 'batch_dims' is ", batch_dims, ", expected at least 0"));
    }
    const std::string name = graph_->UniqueName(absl::StrCat(node->name(), "/axis"));
    PF_ASSIGN_OR_RETURN(Node * axis,
                        graph_->AddConst(name, Tensor::Scalar<int32_t>(static_cast<int32_t>(batch_dims)), node));
    if (has_control_flow_) graph_->AddControlInput(axis, node->input(0).node);
    KeepOnly(node, {kColocationAttr, "_output_shapes", "Tindices"});
    node->set_op(ops::kGatherV2);
    node->SetAttr("Tparams", AttrValue::Type(dtype));
    node->SetAttr("Taxis", AttrValue::Type(DType::kInt32));
    node->SetAttr("batch_dims", AttrValue::Int(batch_dims));
    graph_->AddInput(node, {axis, 0});
    DropControls(node);
    return absl::OkStatus();
  }

  absl::Status EditCall(Node* node) {
    const Retarget& retarget = retargets_.at(node);
    for (const auto& [key, functions] : retarget.functions) {
      node->SetAttr(key, key == "branches" ? AttrValue::FunctionList(functions) : AttrValue::Function(functions[0]));
    }
    const FrozenArgs args = ArgsOfCall(*node);
    FrozenArgs outputs;
    PF_ASSIGN_OR_RETURN(const int num_outputs, NumOutputs(*node));
    for (int i = 0; i < num_outputs; ++i) {
      if (const auto found = frozen_.find({node, i}); found != frozen_.end()) outputs.emplace_back(i, found->second);
    }
    if (IsWhile(*node)) {
      PF_RETURN_IF_ERROR(SetTypes(node, "T", args));
    } else {
      PF_RETURN_IF_ERROR(SetTypes(node, "Tin", args));
      PF_RETURN_IF_ERROR(SetTypes(node, "Tout", outputs));
    }
    if (!outputs.empty()) node->RemoveAttr("_output_shapes");
    const AttrValue* attr = node->FindAttr("output_shapes");
    if (attr == nullptr || outputs.empty()) return absl::OkStatus();
    absl::StatusOr<std::vector<Shape>> shapes = attr->AsShapeList();
    PF_RETURN_IF_ERROR(Annotate(shapes.status(), absl::StrCat(node->Describe(), ": attr 'output_shapes'")));
    for (const auto& [index, frozen] : outputs) {
      if (static_cast<size_t>(index) < shapes->size()) (*shapes)[index] = frozen.shape;
    }
    node->SetAttr("output_shapes", AttrValue::ShapeList(*shapes));
    return absl::OkStatus();
  }

  static absl::Status SetTypes(Node* node, absl::string_view key, const FrozenArgs& frozen) {
    if (frozen.empty()) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(std::vector<DType> types, TypeListAttr(*node, key));
    for (const auto& [index, value] : frozen) {
      if (static_cast<size_t>(index) >= types.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(node->Describe(), ": attr '", key, "' has ", types.size(), " types, expected more"));
      }
      types[index] = value.dtype;
    }
    node->SetAttr(key, AttrValue::TypeList(types));
    return absl::OkStatus();
  }

  // The new function of a call.
  struct Retarget {
    std::vector<std::pair<std::string, std::vector<FunctionRef>>> functions;  // By attribute.
  };

  // Names of reference arguments in the op table.
  static constexpr absl::string_view kReferences = " ref var accum m v ms mom mg linear input resource ";

  ValueFlow* flow_;
  Graph* graph_;
  const bool has_control_flow_;
  Frozen frozen_;
  std::vector<TensorRef> waiting_;
  std::map<uint32_t, Node*> calls_;     // By id: calls that have received new values since they were last analysed.
  absl::flat_hash_set<Node*> touched_;  // Nodes that must be converted.
  absl::flat_hash_map<Node*, Retarget> retargets_;
  std::vector<std::pair<Node*, Tensor>> variables_;
  std::vector<std::pair<Node*, DType>> args_;
};

absl::Status ValueFlow::Freeze(Graph* graph) {
  int64_t count = 0;
  functions_have_variables_ =
      absl::StrContains(graph->library(), "VarHandleOp") || absl::StrContains(graph->library(), "VariableV2");
  Pass pass(this, graph);
  PF_RETURN_IF_ERROR(pass.AddVariables(&count));
  if (functions_have_variables_) pass.AddCalls();
  PF_RETURN_IF_ERROR(pass.Run());
  return new_functions_.Store(graph);
}

absl::StatusOr<absl::btree_set<std::string>> ValueFlow::ChangedVariables(Graph* graph) {
  int64_t count = 0;
  absl::btree_set<std::string> changed;
  changed_ = &changed;
  functions_have_variables_ = absl::StrContains(graph->library(), "VarHandleOp");
  Pass pass(this, graph);
  absl::Status status = pass.AddVariables(&count);
  if (functions_have_variables_) pass.AddCalls();
  if (status.ok()) status = pass.Run();
  changed_ = nullptr;
  PF_RETURN_IF_ERROR(status);
  return changed;
}

absl::StatusOr<const ValueFlow::Twin*> ValueFlow::TwinOf(const Node& caller, const FunctionRef& function,
                                                         const FrozenArgs& args) {
  std::string key = AttrValue::Function(function).Encoded();
  for (const auto& [index, frozen] : args) {
    absl::StrAppend(&key, "\n", index, " ", static_cast<int>(frozen.dtype), " ", frozen.shape.ToString());
    // The error and ChangedVariables name the variable.
    if (changed_ != nullptr) absl::StrAppend(&key, " ", frozen.variable);
  }
  if (const auto found = twins_.find(key); found != twins_.end()) return found->second.get();
  if (depth_ >= kMostDepth) {
    return absl::ResourceExhaustedError(absl::StrCat(caller.Describe(),
                                                     ": functions with variables as arguments are nested ",
                                                     "each other more than ", kMostDepth, " deep, or in a circle"));
  }
  ++depth_;
  absl::StatusOr<Twin> twin = MakeTwin(function, args);
  --depth_;
  PF_RETURN_IF_ERROR(Annotate(twin.status(), caller.Describe()));
  std::unique_ptr<Twin>& kept = twins_[key];
  kept = std::make_unique<Twin>(*std::move(twin));
  return kept.get();
}

absl::StatusOr<ValueFlow::Twin> ValueFlow::MakeTwin(const FunctionRef& function, const FrozenArgs& args) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> body, library_.InstantiateToEdit(function));
  Pass pass(this, body.get());
  PF_RETURN_IF_ERROR(pass.AddVariables(&num_in_functions_));
  pass.AddArgs(args);
  if (functions_have_variables_) pass.AddCalls();
  PF_RETURN_IF_ERROR(Annotate(pass.Run(), absl::StrCat("function '", function.name, "'")));
  Twin twin;
  twin.outputs = pass.Outputs();
  twin.function = function;
  if (!pass.is_changed() || changed_ != nullptr) return twin;
  twin.is_changed = true;
  PF_ASSIGN_OR_RETURN(std::string name, new_functions_.Add(function.name, std::move(body)));
  twin.function = {std::move(name), {}};
  return twin;
}

}  // namespace permafrost

// Inlines the calls within bodies, innermost first, and copies the bodies to their callers.
#include "transforms/rewrites/call_inlining.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Maximum depth of nested calls: deeper than in real programs. Bounds functions that instantiate ever new variants of
// themselves.
constexpr size_t kMostDepth = 1000;
// Names grow with the depth; this bounds their total size.
constexpr int64_t kMostNameBytes = int64_t{256} << 20;

// Returns the function with its attributes, on which the body depends, as a key.
std::string KeyOf(const FunctionRef& function) { return AttrValue::Function(function).Encoded(); }

void SortById(std::vector<Node*>* nodes) {
  std::sort(nodes->begin(), nodes->end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
}

// Removes the control outputs of a body without side effects, which need not be waited for.
absl::Status DropControlOutputs(Graph* body) {
  if (ControlOutputsOf(*body).empty()) return absl::OkStatus();
  std::vector<std::string> inputs, outputs;
  for (const Endpoint& input : body->inputs()) inputs.push_back(input.text);
  for (const Endpoint& output : body->outputs()) {
    if (output.node->op() == ops::k_Retval) outputs.push_back(output.text);
  }
  return body->DeclareInterface(inputs, outputs);
}

std::vector<DType> TypesOf(const std::vector<Node*>& nodes) {
  std::vector<DType> types;
  for (const Node* node : nodes) types.push_back(TypeAttr(*node, "T").value_or(DType::kInvalid));
  return types;
}

// Returns one node that runs after the control inputs of `node` and the producers of `args`. Null if there are none.
absl::StatusOr<Node*> MakeGate(Graph* graph, Node* node, absl::Span<const TensorRef> args) {
  std::vector<Node*> waits;
  for (const TensorRef& arg : args) waits.push_back(arg.node);
  for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) waits.push_back(node->input(i).node);
  SortById(&waits);
  if (waits.empty()) return nullptr;
  if (waits.size() == 1) return waits[0];
  const std::string name = graph->UniqueName(absl::StrCat(node->name(), "/inputs"));
  PF_ASSIGN_OR_RETURN(Node * gate, graph->AddNode(name, ops::kNoOp, node));
  for (Node* each : waits) graph->AddInput(gate, {each, kControlPort});
  return gate;
}

// Keeps the call's name and ports; its readers wait for `controls`.
void BecomeIdentity(Graph* graph, Node* node, const Replacement& replacement, const std::vector<Node*>& controls) {
  const AttrValue* shapes = node->FindAttr("_output_shapes");
  const AttrValue kept_shapes = shapes == nullptr ? AttrValue() : *shapes;
  const std::vector<DType>& types = replacement.types;
  graph->ClearInputs(node);
  node->ClearAttrs();
  node->set_op(types.size() == 1 ? ops::kIdentity : ops::kIdentityN);
  node->SetAttr("T", types.size() == 1 ? AttrValue::Type(types[0]) : AttrValue::TypeList(types));
  if (shapes != nullptr) node->SetAttr("_output_shapes", kept_shapes);
  absl::flat_hash_set<const Node*> read;
  for (const TensorRef& output : replacement.outputs) {
    graph->AddInput(node, output);
    read.insert(output.node);
  }
  for (Node* control : controls) {
    if (!read.contains(control)) graph->AddInput(node, {control, kControlPort});
  }
}

}  // namespace

CallInlining::CallInlining(const FunctionLibrary& library, const InliningOptions& options, PassContext* context)
    : library_(library), options_(options), context_(context) {
  budget_.nodes = options.max_nodes;
  budget_.name_bytes = kMostNameBytes;
}

bool CallInlining::IsCall(const Node& node) const {
  return node.op() == ops::kPartitionedCall || (options_.stateful && node.op() == ops::kStatefulPartitionedCall);
}

absl::StatusOr<std::vector<CallInlining::Call>> CallInlining::CallsOf(const Graph& graph) const {
  std::vector<Call> calls;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!IsCall(*node)) continue;
    if (graph.IsInput(node)) {
      context_->Miss(*node, NotMatched(NearMiss::Kind::kEndpoint, {node, 0}, "is a declared input"));
      continue;
    }
    const AttrValue* attr = node->FindAttr("f");
    if (attr == nullptr) return absl::NotFoundError(absl::StrCat(node->Describe(), ": attr 'f' is missing"));
    absl::StatusOr<FunctionRef> function = attr->AsFunction();
    if (!function.ok()) {
      return absl::NotFoundError(absl::StrCat(node->Describe(), ": attr 'f' ", function.status().message()));
    }
    Call call;
    call.node = node;
    call.function = *std::move(function);
    call.key = KeyOf(call.function);
    calls.push_back(std::move(call));
  }
  return calls;
}

absl::StatusOr<const CallInlining::Body*> CallInlining::BodyOf(const Node& caller, const FunctionRef& function) {
  const std::string key = KeyOf(function);
  if (!bodies_.contains(key)) PF_RETURN_IF_ERROR(Flatten(caller, function, key));
  return bodies_.at(key).get();
}

// Builds the body of a function and of all functions that it calls. Uses an explicit stack, since the depth depends on
// the file.
absl::Status CallInlining::Flatten(const Node& caller, const FunctionRef& function, const std::string& key) {
  std::vector<Open> stack;
  absl::flat_hash_set<std::string> open_keys;
  const auto open = [&](const Node& node, const FunctionRef& callee, const std::string& callee_key) -> absl::Status {
    if (library_.Find(callee.name) == nullptr) {
      return absl::NotFoundError(absl::StrCat(node.Describe(), ": ", library_.Require(callee.name).status().message()));
    }
    absl::StatusOr<std::unique_ptr<Graph>> body = library_.Instantiate(callee);
    if (absl::IsFailedPrecondition(body.status())) {
      auto& obstacle = bodies_[callee_key];
      obstacle = std::make_unique<Body>();
      obstacle->obstacle = std::string(body.status().message());
      return absl::OkStatus();
    }
    PF_RETURN_IF_ERROR(Annotate(body.status(), node.Describe()));
    PF_ASSIGN_OR_RETURN(std::vector<Call> calls, CallsOf(**body));
    open_keys.insert(callee_key);
    stack.push_back({callee_key, callee.name, *std::move(body), std::move(calls)});
    return absl::OkStatus();
  };
  PF_RETURN_IF_ERROR(open(caller, function, key));
  while (!stack.empty()) {
    Open& top = stack.back();
    if (top.next < top.calls.size()) {
      const Call& call = top.calls[top.next++];
      if (bodies_.contains(call.key)) continue;
      if (open_keys.contains(call.key)) return Circle(stack, call);
      if (stack.size() >= kMostDepth) {
        return absl::ResourceExhaustedError(
            absl::StrCat("function '", call.function.name, "': calls are nested more than ", kMostDepth, " deep"));
      }
      PF_RETURN_IF_ERROR(open(*call.node, call.function, call.key));
      continue;
    }
    PF_RETURN_IF_ERROR(Annotate(Finish(&top), absl::StrCat("function '", top.name, "'")));
    open_keys.erase(top.key);
    stack.pop_back();
  }
  return absl::OkStatus();
}

absl::Status CallInlining::Circle(const std::vector<Open>& stack, const Call& call) {
  constexpr size_t kMostShown = 8;
  size_t first = 0;
  while (stack[first].key != call.key) ++first;
  std::string circle;
  for (size_t i = first; i < stack.size() && i < first + kMostShown; ++i) {
    absl::StrAppend(&circle, "'", stack[i].name, "' -> ");
  }
  return absl::InvalidArgumentError(absl::StrCat("function '", call.function.name, "' calls itself (", circle,
                                                 stack.size() - first > kMostShown ? "... -> " : "", "'",
                                                 call.function.name, "'), so no graph can hold all that it does"));
}

absl::Status CallInlining::Finish(Open* open) {
  auto body = std::make_unique<Body>();
  for (const Node* node = open->body->first(); node != nullptr; node = node->next()) {
    body->has_effect |= IsCall(*node) ? CalleeHasEffect(*node, open->calls) : HasEffect(*node);
  }
  if (!body->has_effect) PF_RETURN_IF_ERROR(DropControlOutputs(open->body.get()));
  PF_RETURN_IF_ERROR(InlineAll(open->body.get(), open->calls, /*is_body=*/true).status());
  body->graph = std::move(open->body);
  bodies_[open->key] = std::move(body);
  return absl::OkStatus();
}

// Returns true if the call may have side effects. A call that is not inlined may have them unless it is stateless.
// REQUIRES: calls sorted by the ids of their nodes.
bool CallInlining::CalleeHasEffect(const Node& node, const std::vector<Call>& calls) const {
  const auto call = std::lower_bound(calls.begin(), calls.end(), node.id(),
                                     [](const Call& each, uint32_t id) { return each.node->id() < id; });
  if (call == calls.end() || call->node != &node) return true;
  const Body& callee = *bodies_.at(call->key);
  return callee.graph == nullptr ? node.op() != ops::kPartitionedCall : callee.has_effect;
}

absl::StatusOr<int64_t> CallInlining::InlineAll(Graph* graph, const std::vector<Call>& calls, bool is_body) {
  const bool in_frame = !calls.empty() && HasControlFlow(*graph);
  int64_t inlined = 0;
  for (const Call& call : calls) {
    const Body& body = *bodies_.at(call.key);
    if (body.graph == nullptr) {
      context_->MissIfWanted(*call.node, body.obstacle);
      continue;
    }
    PF_RETURN_IF_ERROR(CheckTypes(*call.node, "Tin", ArgsOf(*body.graph)));
    PF_RETURN_IF_ERROR(CheckTypes(*call.node, "Tout", RetvalsOf(*body.graph)));
    if (is_body) {
      PF_RETURN_IF_ERROR(InlineAt(graph, call.node, 0, body, in_frame).status());
      continue;
    }
    const RewriteScope rewrite(context_, graph, {call.node});
    if (!rewrite) continue;
    PF_RETURN_IF_ERROR(InlineAt(graph, call.node, 0, body, in_frame).status());
    ++inlined;
  }
  return inlined;
}

absl::StatusOr<int64_t> CallInlining::InlineCalls(Graph* graph) {
  PF_ASSIGN_OR_RETURN(const std::vector<Call> calls, CallsOf(*graph));
  for (const Call& call : calls) PF_RETURN_IF_ERROR(BodyOf(*call.node, call.function).status());
  return InlineAll(graph, calls, /*is_body=*/false);
}

absl::StatusOr<std::vector<Node*>> CallInlining::InlineAt(Graph* graph, Node* node, int first_arg, const Body& body,
                                                          bool in_frame) {
  const std::vector<Node*> retvals = RetvalsOf(*body.graph);
  const size_t expected = body.graph->inputs().size();
  if (static_cast<size_t>(node->num_data_inputs() - first_arg) != expected) {
    return absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": has ", node->num_data_inputs() - first_arg,
                                                   " arguments, but the function takes ", expected));
  }
  const std::string prefix = absl::StrCat(node->name(), "/");
  std::vector<TensorRef> args;
  for (int i = first_arg; i < node->num_data_inputs(); ++i) {
    TensorRef arg = node->input(i);
    if (arg.node == node) return absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": reads its own output"));
    if (in_frame && arg.node->op() == ops::kSwitch) {
      // A control edge from a Switch does not wait for the branch.
      const std::string name = graph->UniqueName(absl::StrCat(prefix, body.graph->inputs()[i - first_arg].text));
      PF_ASSIGN_OR_RETURN(Node * identity, graph->AddNode(name, ops::kIdentity, node));
      identity->SetAttr("T", AttrValue::Type(TypeAttr(*arg.node, "T").value_or(DType::kInvalid)));
      graph->AddInput(identity, arg);
      arg = {identity, 0};
    }
    args.push_back(arg);
  }
  const bool has_controls = node->num_inputs() > node->num_data_inputs();
  std::vector<TensorRef> waits;
  if (in_frame) {
    waits = args;
    for (int i = 0; i < first_arg; ++i) waits.push_back(node->input(i));
  }
  PF_ASSIGN_OR_RETURN(Node * gate, MakeGate(graph, node, waits));
  // If there is a single node to wait for, readers of arguments wait for it already.
  const bool is_argument = !has_controls && !args.empty() && args[0].node == gate;
  const Gating gating = !in_frame ? Gating::kStarts : is_argument ? Gating::kInputless : Gating::kBoth;
  PF_ASSIGN_OR_RETURN(BodyCopy copy, CopyBody(*body.graph, prefix, args, gate, gating, &budget_, graph, node));
  Replacement replacement;
  replacement.pending = PendingControls(*body.graph, copy);
  if (has_controls && std::any_of(retvals.begin(), retvals.end(), [](const Node* retval) {
        // A value that is returned unchanged does not depend on the gate.
        const Op op = retval->input(0).node->op();
        return op == ops::k_Arg || op == ops::kConst;
      })) {
    replacement.pending.push_back(gate);
  }
  replacement.done = copy.control_outputs;
  if (gate != nullptr) replacement.done.push_back(gate);
  replacement.types = TypesOf(retvals);
  replacement.outputs = std::move(copy.outputs);
  PF_RETURN_IF_ERROR(ReplaceCall(graph, node, std::move(replacement)));
  return std::move(copy.nodes);
}

namespace {

// Redirects control edges from `node` to `other`. The inputs of all consumers are searched for duplicates only if one
// may exist already, since one node may wait for many calls.
void WaitInstead(Graph* graph, Node* node, const std::vector<Use>& uses, Node* other) {
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (node->input(i).node == other) return graph->ReplaceControlUses(node, other);
  }
  for (const Use& use : uses) {
    if (use.consumer->input(static_cast<int>(use.index)) == TensorRef{node, kControlPort}) {
      graph->SetInput(use.consumer, static_cast<int>(use.index), {other, kControlPort});
    }
  }
}

}  // namespace

absl::Status ReplaceCall(Graph* graph, Node* node, Replacement replacement) {
  for (const TensorRef& output : replacement.outputs) replacement.done.push_back(output.node);
  SortById(&replacement.done);
  SortById(&replacement.pending);
  const std::vector<Node*>& done = replacement.done;

  const std::vector<Use> uses(node->uses().begin(), node->uses().end());
  bool has_control_uses = false, has_data_uses = false;
  for (const Use& use : uses) {
    const TensorRef ref = use.consumer->input(use.index);
    has_control_uses |= ref.is_control();
    has_data_uses |= !ref.is_control();
    if (!ref.is_control() && static_cast<size_t>(ref.port) >= replacement.outputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat(use.consumer->Describe(), " reads output ", ref.port, " of ",
                                                     node->Describe(), ", but the function gives ",
                                                     replacement.outputs.size()));
    }
  }
  if (replacement.pending.empty()) {
    for (const Use& use : uses) {
      const TensorRef ref = use.consumer->input(use.index);
      if (!ref.is_control()) {
        graph->SetInput(use.consumer, static_cast<int>(use.index), replacement.outputs[ref.port]);
      }
    }
  }
  const bool keeps_values = graph->IsOutput(node) || (has_data_uses && !replacement.pending.empty());
  if (keeps_values && !replacement.outputs.empty()) {
    BecomeIdentity(graph, node, replacement, has_control_uses ? done : replacement.pending);
    return absl::OkStatus();
  }
  if (graph->IsOutput(node) || (has_control_uses && done.size() != 1)) {
    graph->ClearInputs(node);
    node->ClearAttrs();
    node->set_op(ops::kNoOp);
    for (Node* each : done) graph->AddInput(node, {each, kControlPort});
    return absl::OkStatus();
  }
  if (has_control_uses) WaitInstead(graph, node, uses, done[0]);
  return graph->RemoveNode(node);
}

std::vector<Node*> PendingControls(const Graph& body, const BodyCopy& copy) {
  constexpr size_t kMostOutputs = 8;  // Each costs a walk over the body.
  const std::vector<Node*> retvals = RetvalsOf(body), controls = ControlOutputsOf(body);
  if (controls.empty() || retvals.empty() || retvals.size() > kMostOutputs) return copy.control_outputs;
  std::vector<bool> runs_anyway(controls.size(), true);
  for (Node* retval : retvals) {
    const std::vector<bool> reached = ReachedBackwards(body, {retval}, {});
    for (size_t i = 0; i < controls.size(); ++i) runs_anyway[i] = runs_anyway[i] && reached[controls[i]->id()];
  }
  std::vector<Node*> pending;
  for (size_t i = 0; i < controls.size(); ++i) {
    if (!runs_anyway[i]) pending.push_back(copy.control_outputs[i]);
  }
  return pending;
}

absl::Status CheckTypes(const Node& node, absl::string_view key, const std::vector<Node*>& nodes) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> declared, TypeListAttr(node, key));
  const std::vector<DType> types = TypesOf(nodes);
  bool fits = declared.size() == types.size();
  for (size_t i = 0; fits && i < types.size(); ++i) fits = RemoveRef(declared[i]) == RemoveRef(types[i]);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(node.Describe(), ": attr '", key, "' does not have the types of the function"));
}

absl::StatusOr<Node*> ControlGate(Graph* graph, Node* node) { return MakeGate(graph, node, {}); }

bool HasControlFlow(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const OpSchema* schema = FindSchema(node->op());
    if (schema != nullptr && schema->Is(kControlFlow)) return true;
  }
  return false;
}

}  // namespace permafrost

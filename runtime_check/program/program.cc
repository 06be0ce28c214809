// Prunes a graph to the nodes that the fetches need, orders it and checks it.
#include "runtime_check/program/program.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/program/functions.h"
#include "runtime_check/program/fused_loop.h"
#include "runtime_check/program/integer_fusion.h"

namespace permafrost {
namespace {

bool IsPlaceholder(Op op) { return op == ops::kPlaceholder || op == ops::kPlaceholderV2; }

absl::StatusOr<TensorRef> FindTensor(const Graph& graph, const std::string& name, absl::string_view role) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
  int32_t port = 0;
  if (parts.first.size() < name.size() && (!absl::SimpleAtoi(parts.second, &port) || port < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", name, "': found '", parts.second, "', expected the number of an output"));
  }
  Node* node = graph.Find(parts.first);
  if (node == nullptr) {
    std::vector<absl::string_view> names;
    for (const Node* other = graph.first(); other != nullptr; other = other->next()) names.push_back(other->name());
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", name, "': the graph has no node of that name", DidYouMean(parts.first, names)));
  }
  if (const absl::StatusOr<std::vector<DType>> types = OutputTypes(*node);
      types.ok() && static_cast<size_t>(port) >= types->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", name, "': ", node->Describe(), " has ", types->size(), " outputs"));
  }
  return TensorRef{node, port};
}

// Returns GraphDef.versions.producer, or 0.
int64_t ProducerVersion(const Graph& graph) {
  WireReader reader(graph.versions());
  int64_t version = 0;
  for (WireField field; reader.Next(&field);) {
    if (field.number == 1 && field.type == WireType::kVarint) version = static_cast<int64_t>(field.value);
  }
  return version;
}

// Returns the shape that a placeholder declares. Before version 24 of GraphDef, a scalar also represented an unknown
// shape.
Shape DeclaredShape(const Graph& graph, const Node& node) {
  constexpr int64_t kFirstWithUnknownShapes = 24;
  if (!IsPlaceholder(node.op()) && node.op() != ops::kPlaceholderWithDefault) return Shape::UnknownRank();
  const absl::StatusOr<Shape> shape = ShapeAttr(node, "shape");
  if (!shape.ok()) return Shape::UnknownRank();
  if (shape->has_rank() && shape->rank() == 0 && ProducerVersion(graph) < kFirstWithUnknownShapes) {
    return Shape::UnknownRank();
  }
  return *shape;
}

// Returns the type of a fed tensor: from its node, otherwise from a reader; kInvalid if neither is known.
DType FedType(const Graph& graph, TensorRef ref, const KernelLookup& lookup) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypesFor(*ref.node, lookup(ref.node->op()));
  if (types.ok() && static_cast<size_t>(ref.port) < types->size()) return RemoveRef((*types)[ref.port]);
  for (const Use& use : graph.UsesOf(ref)) {
    const absl::StatusOr<std::vector<DType>> expected = InputTypesFor(*use.consumer, lookup(use.consumer->op()));
    if (expected.ok() && use.index < expected->size()) return RemoveRef((*expected)[use.index]);
  }
  return DType::kInvalid;
}

class Builder {
 public:
  Builder(const Graph& graph, const ProgramContext& context) : graph_(graph), context_(context) {}

  // Fuses the quantised operators that the request needs. `graph` is the graph of this builder, which is not used
  // afterwards.
  absl::Status Fuse(const ProgramRequest& request, Graph* graph) {
    std::vector<TensorRef> fetched;
    PF_RETURN_IF_ERROR(ReadRequest(request, &fetched));
    absl::flat_hash_set<TensorRef> fed;
    for (const auto& [ref, number] : numbers_) fed.insert(ref);
    return FuseQuantizedOperators(needed_, fed, graph);
  }

  absl::StatusOr<Program> Build(const ProgramRequest& request) {
    std::vector<TensorRef> fetched;
    PF_RETURN_IF_ERROR(ReadRequest(request, &fetched));
    PF_RETURN_IF_ERROR(CheckPlaceholders());
    PF_RETURN_IF_ERROR(CheckKernels());
    if (selection::kHoldsControlFlow && HasControlFlow()) {
      PF_RETURN_IF_ERROR(AddInFrames(fetched));
    } else {
      PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, Order());
      for (const Node* node : order) PF_RETURN_IF_ERROR(AddOutputs(*node));
    }
    for (ProgramNode& node : program_.nodes) PF_RETURN_IF_ERROR(AddInputs(&node));
    if (selection::kHoldsControlFlow && program_.has_control_flow()) {
      FindWhatMayBeDead();
      if constexpr (kFusesLoops) {
        for (size_t i = 1; i < program_.frames.size(); ++i) {
          program_.frames[i].fused = FusedLoop::OfFrame(program_, static_cast<int>(i));
        }
      }
    }
    for (size_t i = 0; i < fetched.size(); ++i) {
      PF_ASSIGN_OR_RETURN(const int tensor, Number(BehindCopies(fetched[i])));
      program_.fetches.push_back(tensor);
      program_.fetch_names.push_back(request.fetches[i]);
    }
    return std::move(program_);
  }

 private:
  // Adds the feeds, finds the fetched tensors and the nodes that are needed.
  absl::Status ReadRequest(const ProgramRequest& request, std::vector<TensorRef>* fetched) {
    PF_RETURN_IF_ERROR(AddFeeds(request.feeds));
    needed_.assign(graph_.id_limit(), false);
    for (const std::string& name : request.fetches) {
      PF_ASSIGN_OR_RETURN(fetched->emplace_back(), FindTensor(graph_, name, "output"));
    }
    for (const std::string& name : request.targets) {
      Node* node = graph_.Find(name);
      if (node == nullptr) return absl::InvalidArgumentError(absl::StrCat("the graph has no node '", name, "'"));
      Need({node, kControlPort});
    }
    FindNeeded(*fetched);
    return absl::OkStatus();
  }

  absl::Status AddFeeds(absl::Span<const std::string> feeds) {
    for (const std::string& name : feeds) {
      PF_ASSIGN_OR_RETURN(const TensorRef ref, FindTensor(graph_, name, "input"));
      const auto number = static_cast<int>(program_.tensors.size());
      if (!numbers_.emplace(ref, number).second) {
        return absl::InvalidArgumentError(absl::StrCat("input '", name, "' is fed twice"));
      }
      fed_nodes_.insert(ref.node);
      program_.tensors.push_back({FedType(graph_, ref, context_.kernel_lookup), ref});
      program_.feeds.push_back({name, number, DeclaredShape(graph_, *ref.node)});
    }
    return absl::OkStatus();
  }

  void Need(TensorRef ref) {
    if (ref.is_control() ? fed_nodes_.contains(ref.node) : numbers_.contains(ref)) return;
    if (needed_[ref.node->id()]) return;
    needed_[ref.node->id()] = true;
    open_.push_back(ref.node);
  }

  void FindNeeded(const std::vector<TensorRef>& fetched) {
    for (const TensorRef ref : fetched) Need(ref);
    while (!open_.empty()) {
      const Node* node = open_.back();
      open_.pop_back();
      for (int i = 0; i < node->num_inputs(); ++i) Need(node->input(i));
    }
  }

  absl::Status CheckPlaceholders() const {
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (needed_[node->id()] && IsPlaceholder(node->op())) {
        return absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": needed and not fed"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckKernels() const {
    constexpr size_t kMostNames = 5;
    absl::flat_hash_map<std::string, std::vector<absl::string_view>> nodes_by_reason;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!needed_[node->id()] || node->op() == ops::kConst) continue;
      if (CalledAsOp(*node)) continue;
      const absl::Status status = CheckKernel(*node, context_.kernel_lookup(node->op()));
      if (absl::IsUnimplemented(status)) {
        nodes_by_reason[status.message()].push_back(node->name());
      } else {
        PF_RETURN_IF_ERROR(status);
      }
    }
    if (nodes_by_reason.empty()) return absl::OkStatus();
    std::vector<std::string> parts;
    for (auto& [reason, names] : nodes_by_reason) {
      const size_t count = names.size();
      names.resize(std::min(count, kMostNames));
      parts.push_back(absl::StrCat(reason, ": ", count == 1 ? "node '" : "nodes '", absl::StrJoin(names, "', '"), "'"));
      if (count > kMostNames) absl::StrAppend(&parts.back(), " and ", count - kMostNames, " more");
    }
    absl::c_sort(parts);
    return absl::UnimplementedError(absl::StrCat(absl::StrJoin(parts, "; "), selection::kHint));
  }

  // Returns whether the node runs after the producer of `input`.
  bool WaitsFor(TensorRef input) const {
    return needed_[input.node->id()] && (input.is_control() || !numbers_.contains(input));
  }

  bool HasControlFlow() const {
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (needed_[node->id()] && FlowRoleOf(node->op()) != FlowRole::kNone) return true;
    }
    return false;
  }

  absl::Status AddInFrames(const std::vector<TensorRef>& fetched) {
    const auto waits_for = [&](TensorRef input) { return WaitsFor(input); };
    std::vector<TensorRef> computed;
    std::copy_if(fetched.begin(), fetched.end(), std::back_inserter(computed), waits_for);
    PF_ASSIGN_OR_RETURN(FrameOrder order, OrderByFrames(graph_, needed_, waits_for));
    program_.frames = std::move(order.frames);
    std::vector<int> position_of(graph_.id_limit(), -1);
    for (size_t i = 0; i < order.order.size(); ++i) {
      PF_RETURN_IF_ERROR(AddOutputs(*order.order[i]));
      program_.nodes.back().role = FlowRoleOf(order.order[i]->op());
      program_.nodes.back().frame = order.frame_of[i];
      position_of[order.order[i]->id()] = static_cast<int>(i);
    }
    for (const TensorRef ref : computed) {
      const ProgramNode& node = program_.nodes[position_of[ref.node->id()]];
      const bool leaves = node.role == FlowRole::kExit && program_.frames[node.frame].parent == 0;
      if (leaves || (node.frame == 0 && node.role != FlowRole::kEnter)) continue;
      return absl::InvalidArgumentError(absl::StrCat("output '", ref.ToString(), "': ", ref.node->Describe(),
                                                     " is in a loop; only what an Exit lets out can be fetched"));
    }
    return absl::OkStatus();
  }

  // Marks all nodes in frames, and outside of frames those that depend on a Switch or an Exit.
  void FindWhatMayBeDead() {
    absl::flat_hash_map<const Node*, int> positions;
    for (size_t i = 0; i < program_.nodes.size(); ++i) positions.emplace(program_.nodes[i].node, static_cast<int>(i));
    std::vector<bool> tensor_may(program_.tensors.size(), false);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      ProgramNode& node = program_.nodes[i];
      node.may_be_dead = node.frame != 0;
      for (const int tensor : program_.InputsOf(node)) node.may_be_dead = node.may_be_dead || tensor_may[tensor];
      std::vector<int> controls;
      for (int j = node.node->num_data_inputs(); j < node.node->num_inputs(); ++j) {
        if (!WaitsFor(node.node->input(j))) continue;
        const int producer = positions[node.node->input(j).node];
        if (program_.nodes[producer].may_be_dead) controls.push_back(producer);
      }
      node.may_be_dead = node.may_be_dead || !controls.empty();
      node.first_control = static_cast<int>(program_.controls.size());
      node.num_controls = static_cast<int>(controls.size());
      program_.controls.insert(program_.controls.end(), controls.begin(), controls.end());
      const bool outputs_may = node.may_be_dead || node.role == FlowRole::kSwitch;
      for (int j = 0; j < node.num_outputs; ++j) tensor_may[node.first_output + j] = outputs_may;
    }
  }

  // Returns the needed nodes in order; among nodes that are ready, the first in the file comes first.
  absl::StatusOr<std::vector<Node*>> Order() const {
    std::vector<uint32_t> position(graph_.id_limit(), 0);
    std::vector<uint32_t> pending(graph_.id_limit(), 0);
    using Entry = std::pair<uint32_t, Node*>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
    size_t count = 0;
    uint32_t next_position = 0;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      position[node->id()] = next_position++;
      if (!needed_[node->id()]) continue;
      ++count;
      for (int i = 0; i < node->num_inputs(); ++i) pending[node->id()] += WaitsFor(node->input(i)) ? 1 : 0;
      if (pending[node->id()] == 0) ready.push({position[node->id()], node});
    }
    std::vector<Node*> order;
    order.reserve(count);
    while (!ready.empty()) {
      Node* node = ready.top().second;
      ready.pop();
      order.push_back(node);
      for (const Use& use : node->uses()) {
        Node* consumer = use.consumer;
        if (!needed_[consumer->id()] || !WaitsFor(consumer->input(static_cast<int>(use.index)))) continue;
        if (--pending[consumer->id()] == 0) ready.push({position[consumer->id()], consumer});
      }
    }
    if (order.size() == count) return order;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (pending[node->id()] == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(count - order.size(), " nodes are in a cycle or behind one, such as ", node->Describe()));
    }
    return absl::InternalError("the order lost nodes");
  }

  // Returns whether the node's op is a function of the library, as in old graphs.
  bool CalledAsOp(const Node& node) const {
    return selection::kHoldsFunctions && !node.op().is_known() && context_.functions != nullptr &&
           context_.functions->Find(node.op().name()) != nullptr;
  }

  static FunctionRef ReferenceOf(const Node& node) {
    FunctionRef reference;
    reference.name = std::string(node.op().name());
    for (const Attr& attr : node.attrs()) reference.attrs.emplace_back(attr.key, attr.value);
    return reference;
  }

  absl::Status AddCall(const Node& node, ProgramNode* entry) {
    if (!selection::kHoldsFunctions) return absl::OkStatus();
    FunctionCall call;
    std::vector<FunctionRef> references;
    const auto add = [&](absl::string_view key) -> absl::Status {
      const AttrValue* attr = node.FindAttr(key);
      if (attr == nullptr) return absl::InvalidArgumentError(absl::StrCat("no attr '", key, "'"));
      if (attr->kind() != AttrValue::Kind::kList) {
        PF_ASSIGN_OR_RETURN(references.emplace_back(), attr->AsFunction());
        return absl::OkStatus();
      }
      PF_ASSIGN_OR_RETURN(references, attr->AsFunctionList());
      return absl::OkStatus();
    };
    std::vector<absl::string_view> keys;
    if (CalledAsOp(node)) {
      references.push_back(ReferenceOf(node));
    } else if (node.op() == ops::kPartitionedCall || node.op() == ops::kStatefulPartitionedCall) {
      keys = {"f"};
    } else if (node.op() == ops::kIf || node.op() == ops::kStatelessIf) {
      call.kind = FunctionCall::Kind::kIf;
      keys = {"then_branch", "else_branch"};
    } else if (node.op() == ops::kCase || node.op() == ops::kStatelessCase) {
      call.kind = FunctionCall::Kind::kCase;
      keys = {"branches"};
    } else if (node.op() == ops::kWhile || node.op() == ops::kStatelessWhile) {
      call.kind = FunctionCall::Kind::kWhile;
      call.fused = std::make_shared<std::shared_ptr<FusedLoop>>();
      keys = {"cond", "body"};
    } else {
      return absl::OkStatus();
    }
    for (const absl::string_view key : keys) PF_RETURN_IF_ERROR(Annotate(add(key), node.Describe()));
    if (references.empty()) return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": calls no function"));
    for (const FunctionRef& reference : references) {
      if (context_.functions == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat(node.Describe(), ": calls function '", reference.name, "', and the graph has no functions"));
      }
      absl::StatusOr<CompiledFunction*> function = context_.functions->Get(reference);
      PF_RETURN_IF_ERROR(Annotate(function.status(), node.Describe()));
      call.functions.push_back(*function);
    }
    entry->call = static_cast<int>(program_.calls.size());
    program_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  absl::Status AddOutputs(const Node& node) {
    ProgramNode entry;
    entry.node = &node;
    entry.first_output = static_cast<int>(program_.tensors.size());
    if (node.op() == ops::kConst) {
      PF_RETURN_IF_ERROR(AddConstant(node, &entry));
    } else if (node.op() == ops::kImmutableConst) {
      PF_RETURN_IF_ERROR(Annotate(AddRegion(node, &entry), node.Describe()));
    } else {
      const OpSchema* schema = FindSchema(node.op());
      PF_RETURN_IF_ERROR(AddCall(node, &entry));
      entry.kernel = context_.kernel_lookup(CalledAsOp(node) ? Op(ops::kPartitionedCall) : node.op());
      const KernelSignature* signature = entry.kernel->signature().has_value() ? &*entry.kernel->signature() : nullptr;
      entry.is_pure = schema != nullptr ? schema->traits == kPure : signature != nullptr && signature->is_pure;
      PF_ASSIGN_OR_RETURN(const std::vector<DType> types,
                          CalledAsOp(node) ? context_.functions->library().OutputTypes(ReferenceOf(node))
                                           : OutputTypesFor(node, entry.kernel));
      for (const DType type : types) AddTensor(RemoveRef(type), &node);
    }
    entry.num_outputs = static_cast<int>(program_.tensors.size()) - entry.first_output;
    program_.nodes.push_back(entry);
    return absl::OkStatus();
  }

  void AddTensor(DType dtype, const Node* node) {
    const auto number = static_cast<int>(program_.tensors.size());
    const int first = program_.nodes.empty() ? static_cast<int>(program_.feeds.size())
                                             : program_.nodes.back().first_output + program_.nodes.back().num_outputs;
    const TensorRef ref{const_cast<Node*>(node), number - first};
    program_.tensors.push_back({dtype, ref});
    numbers_.emplace(ref, number);  // Keeps the feed if the tensor is fed.
  }

  absl::Status AddConstant(const Node& node, ProgramNode* entry) {
    const AttrValue* attr = node.FindAttr("value");
    DType dtype = DType::kInvalid;
    Shape shape;
    if (attr != nullptr && attr->held_tensor() == nullptr && attr->TensorTypeAndShape(&dtype, &shape).ok()) {
      // A few bytes of a TensorProto may encode many elements.
      const int64_t bytes = ValueBytes(dtype, shape).value_or(0);
      if (static_cast<uint64_t>(bytes) > attr->encoded().size()) {
        PF_RETURN_IF_ERROR(Annotate(context_.budget->Take(bytes, "the value"), node.Describe()));
      }
    }
    PF_ASSIGN_OR_RETURN(Tensor value, ConstValue(node));
    AddTensor(value.dtype(), &node);
    entry->constant = static_cast<int>(program_.constants.size());
    program_.constants.push_back(std::move(value));
    return absl::OkStatus();
  }

  absl::Status AddRegion(const Node& node, ProgramNode* entry) {
    PF_ASSIGN_OR_RETURN(const std::string region, StringAttr(node, "memory_region_name"));
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(node, "dtype"));
    PF_ASSIGN_OR_RETURN(const Shape shape, ShapeAttr(node, "shape"));
    if (context_.region_reader == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("needs the memory region '", region, "', and the session is given none"));
    }
    PF_ASSIGN_OR_RETURN(Tensor value, context_.region_reader(region, dtype, shape));
    if (value.dtype() != dtype || value.shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat("the memory region '", region, "' holds ",
                                                     DTypeName(value.dtype()), " ", value.shape().ToString(),
                                                     ", expected ", DTypeName(dtype), " ", shape.ToString()));
    }
    AddTensor(dtype, &node);
    entry->constant = static_cast<int>(program_.constants.size());
    program_.constants.push_back(std::move(value));
    return absl::OkStatus();
  }

  // Returns the tensor that `ref` equals behind IdentityN and gradient stops. Their readers read the inputs instead,
  // and the nodes are omitted from the plan. Identity is kept, because behind a variable it is a snapshot. Behind a
  // Switch an IdentityN waits for all its inputs, so a program with control flow keeps it.
  TensorRef BehindCopies(TensorRef ref) const {
    if (program_.has_control_flow()) return ref;
    while (!fed_nodes_.contains(ref.node) && ref.port < ref.node->num_data_inputs()) {
      const Op op = ref.node->op();
      if (op != ops::kIdentityN && op != ops::kStopGradient && op != ops::kPreventGradient) break;
      ref = ref.node->input(ref.port);
    }
    return ref;
  }

  absl::StatusOr<int> Number(TensorRef ref) const {
    const auto found = numbers_.find(ref);
    if (found == numbers_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(ref.node->Describe(), " has no output ", ref.port));
    }
    return found->second;
  }

  absl::Status AddInputs(ProgramNode* entry) {
    entry->first_input = static_cast<int>(program_.inputs.size());
    if (entry->kernel == nullptr) return absl::OkStatus();
    const Node& node = *entry->node;
    entry->num_inputs = node.num_data_inputs();
    PF_ASSIGN_OR_RETURN(const std::vector<DType> expected,
                        CalledAsOp(node) ? context_.functions->library().InputTypes(ReferenceOf(node))
                                         : InputTypesFor(node, entry->kernel));
    if (expected.size() != static_cast<size_t>(entry->num_inputs)) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.Describe(), ": found ", entry->num_inputs, " inputs, expected ", expected.size()));
    }
    for (int i = 0; i < entry->num_inputs; ++i) {
      const absl::StatusOr<int> number = Number(BehindCopies(node.input(i)));
      PF_RETURN_IF_ERROR(Annotate(number.status(), absl::StrCat(node.Describe(), ": input ", i)));
      ProgramTensor& tensor = program_.tensors[*number];
      if (tensor.dtype != RemoveRef(expected[i])) {
        return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": input ", i, " ('", node.input(i).ToString(),
                                                       "') is ", DTypeName(tensor.dtype), ", expected ",
                                                       DTypeName(expected[i])));
      }
      program_.inputs.push_back(*number);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const ProgramContext& context_;
  Program program_;
  absl::flat_hash_map<TensorRef, int> numbers_;
  absl::flat_hash_set<const Node*> fed_nodes_;
  std::vector<bool> needed_;
  std::vector<const Node*> open_;
};

[[maybe_unused]] void Keep(std::shared_ptr<const Graph> graph, std::shared_ptr<const Graph>* kept) {
  *kept = std::move(graph);
}
[[maybe_unused]] void Keep(std::shared_ptr<const Graph>, Program::NoGraph*) {}

}  // namespace

absl::StatusOr<Program> BuildProgram(const Graph& graph, const ProgramRequest& request, const ProgramContext& context) {
  if (!kHoldsQuantizedOperators || !HasQuantizedOperators(graph)) return Builder(graph, context).Build(request);
  std::shared_ptr<Graph> fused = graph.Clone();
  PF_RETURN_IF_ERROR(Builder(*fused, context).Fuse(request, fused.get()));
  PF_ASSIGN_OR_RETURN(Program program, Builder(*fused, context).Build(request));
  Keep(std::move(fused), &program.fused);
  return program;
}

}  // namespace permafrost

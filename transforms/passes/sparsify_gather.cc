// Replaces gathers from a column of mostly zero weights by lookups in a table of the nonzero weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/saved_variables.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

struct Params {
  std::string input_checkpoint;
  std::string group_init_node = "group_deps";
  float threshold = 1e-5f;
  float min_sparsity = 0;
  bool hash_table_v2 = false;
};

bool IsVariable(Op op) { return op == ops::kVariable || op == ops::kVariableV2 || op == ops::kVarHandleOp; }

// Returns the variable that a tensor is read from, or null.
Node* VariableBehind(TensorRef ref) {
  Node* node = ref.node;
  for (int reads = 0; reads < kMaxReads; ++reads) {
    if (node->op() != ops::kIdentity && node->op() != ops::kReadVariableOp) break;
    if (node->num_data_inputs() == 0) break;
    node = node->input(0).node;
  }
  return IsVariable(node->op()) ? node : nullptr;
}

// Returns OK if the gather takes rows of its first input, otherwise the reason.
absl::Status TakesRows(const Graph& graph, const Node& gather) {
  if (graph.IsInput(&gather))
    return NotMatched(NearMiss::Kind::kEndpoint, {const_cast<Node*>(&gather), 0}, "is a declared input");
  if (gather.op() == ops::kGather) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const int64_t batch_dims, IntAttr(gather, "batch_dims"));
  if (batch_dims != 0) return absl::FailedPreconditionError(absl::StrCat("batch_dims is ", batch_dims, ", expected 0"));
  const Node* axis = ConstantBehind(gather.input(2));
  if (axis == nullptr) return NotMatched(NearMiss::Kind::kNotConstant, gather.input(2), "its axis is not constant");
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*axis));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerValues(value));
  // -2 is equivalent, since the weights must have two dimensions.
  if (values.size() == 1 && (values[0] == 0 || values[0] == -2)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("its axis is ", values.size() == 1 ? absl::StrCat(values[0]) : "no scalar", ", expected 0"));
}

// Returns true for a node that only maintains a variable: it saves it, or tests if it is initialised.
bool IsCaretaker(Op op) {
  return op == ops::kSave || op == ops::kSaveSlices || op == ops::kSaveV2 || op == ops::kIsVariableInitialized ||
         op == ops::kVarIsInitializedOp;
}

// One constant or variable, the nodes that only pass it on, and the gathers that read it.
struct Weights {
  Node* source = nullptr;
  std::vector<Node*> gathers;
  std::vector<Node*> readers;      // The source and every Identity or ReadVariableOp of it.
  std::vector<Node*> assignments;  // To a variable.
  std::vector<Node*> unneeded;     // Other readers that no output needs, with their consumers.
  bool has_caretaker = false;      // The variable must be kept.
};

// Returns true if a node that no output needs may be removed with the weights that it reads. Excludes nodes that may
// assign or save, and gathers, which may be about to become lookups.
bool MayGoWithWeights(const Node& node) {
  if (node.op() == ops::kGather || node.op() == ops::kGatherV2) return false;
  return MayGoUnread(node) || absl::EndsWith(node.op().name(), "Summary") || node.op() == ops::kPrint ||
         node.op() == ops::kAssert;
}

// Adds `reader` and its consumers to the nodes removed with the weights. Returns FailedPrecondition if one must be
// kept.
absl::Status AddUnneeded(const Graph& graph, const std::vector<bool>& is_needed, Node* reader, Weights* weights) {
  if (reader->id() >= is_needed.size() || is_needed[reader->id()]) {
    return absl::FailedPreconditionError(
        absl::StrCat(reader->Describe(), " also reads the weights, so they would be kept beside the table"));
  }
  const size_t first = weights->unneeded.size();
  absl::flat_hash_set<const Node*> seen(weights->unneeded.begin(), weights->unneeded.end());
  if (seen.insert(reader).second) weights->unneeded.push_back(reader);
  for (size_t i = first; i < weights->unneeded.size(); ++i) {
    Node* node = weights->unneeded[i];
    if (graph.IsEndpoint(node) || !MayGoWithWeights(*node)) {
      return absl::FailedPreconditionError(
          absl::StrCat(reader->Describe(), " reads the weights too, and ", node->Describe(), " needs it"));
    }
    for (const Use& use : node->uses()) {
      if (use.consumer->input(static_cast<int>(use.index)).is_control()) continue;
      if (seen.insert(use.consumer).second) weights->unneeded.push_back(use.consumer);
    }
  }
  return absl::OkStatus();
}

// Adds an assignment of `weights`, which is removed with them.
absl::Status AddAssignment(const Graph& graph, Node* assignment, Weights* weights) {
  for (const Use& use : assignment->uses()) {
    if (use.consumer->input(use.index).is_control()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(use.consumer->Describe(), " reads the weights as ", assignment->Describe(), " leaves them"));
  }
  weights->assignments.push_back(assignment);
  if (graph.IsEndpoint(assignment)) weights->has_caretaker = true;
  return absl::OkStatus();
}

// Collects the nodes of the weights. Returns FailedPrecondition if an output has another use for them, so that they
// must be kept.
absl::Status RequireOnlyGathers(const Graph& graph, const std::vector<bool>& is_needed, Weights* weights) {
  const absl::flat_hash_set<const Node*> gathers(weights->gathers.begin(), weights->gathers.end());
  weights->readers = {weights->source};
  const bool is_variable = IsVariable(weights->source->op());
  for (size_t i = 0; i < weights->readers.size(); ++i) {
    Node* node = weights->readers[i];
    if (graph.IsEndpoint(node)) {
      return NotMatched(NearMiss::Kind::kEndpoint, {node, 0},
                        absl::StrCat(node->Describe(), " is a declared ", graph.IsOutput(node) ? "output" : "input"));
    }
    if (node->num_inputs() > node->num_data_inputs()) {
      return NotMatched(
          absl::StrCat(node->Describe(), " waits for '", node->input(node->num_data_inputs()).node->name(), "'"),
          "run remove_control_dependencies first if that is not needed");
    }
    for (const Use& use : node->uses()) {
      if (use.consumer->input(use.index).is_control()) continue;
      const Op op = use.consumer->op();
      if (op == ops::kIdentity || (is_variable && op == ops::kReadVariableOp)) {
        weights->readers.push_back(use.consumer);
      } else if (is_variable && use.index == 0 && (op == ops::kAssign || op == ops::kAssignVariableOp)) {
        PF_RETURN_IF_ERROR(AddAssignment(graph, use.consumer, weights));
      } else if (is_variable && IsCaretaker(op)) {
        weights->has_caretaker = true;
      } else if (use.index != 0 || !gathers.contains(use.consumer)) {
        PF_RETURN_IF_ERROR(AddUnneeded(graph, is_needed, use.consumer, weights));
      }
    }
  }
  return absl::OkStatus();
}

// Returns by node id the nodes that the declared outputs need; all nodes if no output is declared.
std::vector<bool> FindNeeded(const Graph& graph) {
  if (graph.outputs().empty()) return std::vector<bool>(graph.id_limit(), true);
  std::vector<Node*> outputs;
  for (const Endpoint& output : graph.outputs()) outputs.push_back(output.node);
  return ReachedBackwards(graph, outputs, {});
}

class Sparsification {
 public:
  Sparsification(Graph* graph, const Params& params, PassContext* context)
      : graph_(graph), params_(params), context_(context) {}

  absl::StatusOr<int64_t> Run() {
    if (!params_.input_checkpoint.empty()) PF_RETURN_IF_ERROR(OpenCheckpoint());
    PF_ASSIGN_OR_RETURN(std::vector<Weights> found, Find());
    const std::vector<bool> is_needed = FindNeeded(*graph_);
    for (Weights& weights : found) PF_RETURN_IF_ERROR(Convert(is_needed, &weights));
    if (num_gathers_ == 0) {
      context_->NoteAbsent("no gather reads a column of float weights without other readers");
      return 0;
    }
    for (const std::string& name : maybe_unread_) {
      if (Node* node = graph_->Find(name); node != nullptr) no_longer_read_.push_back(node);
    }
    PF_ASSIGN_OR_RETURN(const int64_t unread, RemoveUnread(graph_, std::move(no_longer_read_)));
    DropDanglingColocations(graph_);
    context_->Note(absl::StrCat("replaced ", num_gathers_, " gathers by lookups in ", initialisers_.size(),
                                " tables, which keep ", num_kept_, " of ", num_weights_, " weights"));
    context_->Note(absl::StrCat("run '", params_.group_init_node,
                                "' once before the outputs: it fills the tables; declare it as an output where later "
                                "passes drop what no output needs"));
    if (num_unneeded_ > 0) {
      context_->Note(absl::StrCat("removed ", num_unneeded_, " nodes that read the weights and that no output needs"));
    }
    return num_gathers_ + num_unneeded_ + unread;
  }

 private:
  absl::Status OpenCheckpoint() {
    if (!context_->open_checkpoint) return absl::FailedPreconditionError("there is nothing to read checkpoints with");
    PF_ASSIGN_OR_RETURN(checkpoint_, context_->open_checkpoint(params_.input_checkpoint));
    saved_.emplace(*graph_);
    return absl::OkStatus();
  }

  // Returns the weights that gathers read, in the order of the first gather of each.
  absl::StatusOr<std::vector<Weights>> Find() {
    std::vector<Weights> found;
    absl::flat_hash_map<const Node*, size_t> index;
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
      const int num_inputs = node->op() == ops::kGather ? 2 : node->op() == ops::kGatherV2 ? 3 : -1;
      if (node->num_data_inputs() != num_inputs) continue;
      Node* source = ConstantBehind(node->input(0));
      if (source == nullptr && checkpoint_ != nullptr) source = VariableBehind(node->input(0));
      if (source == nullptr) {
        context_->Miss(*node, NotMatched(NearMiss::Kind::kNotConstant, node->input(0), "its weights are not constant"));
        continue;
      }
      if (const absl::Status status = TakesRows(*graph_, *node); !status.ok()) {
        context_->Miss(*node, status);
        continue;
      }
      const auto [entry, is_new] = index.try_emplace(source, found.size());
      if (is_new) found.emplace_back().source = source;
      found[entry->second].gathers.push_back(node);
    }
    return found;
  }

  absl::StatusOr<Tensor> Value(const Node& source) const {
    if (!IsVariable(source.op())) return ConstValue(source);
    absl::StatusOr<Tensor> value = saved_->Read(*checkpoint_, source);
    if (!value.ok()) return Annotate(value.status(), source.Describe());
    return value;
  }

  void Miss(const Weights& weights, const absl::Status& why) {
    for (const Node* gather : weights.gathers) context_->Miss(*gather, why);
  }

  absl::Status Convert(const std::vector<bool>& is_needed, Weights* weights) {
    const Node& source = *weights->source;
    PF_ASSIGN_OR_RETURN(const Tensor value, Value(source));
    const Shape& shape = value.shape();
    if (value.dtype() != DType::kFloat || shape.rank() != 2 || shape.dim(1) != 1) {
      Miss(*weights, absl::FailedPreconditionError(absl::StrCat("its weights are ", DTypeName(value.dtype()),
                                                                shape.ToString(), ", expected float[?,1]")));
      return absl::OkStatus();
    }
    if (const absl::Status status = RequireOnlyGathers(*graph_, is_needed, weights); !status.ok()) {
      Miss(*weights, status);
      return absl::OkStatus();
    }
    std::vector<int64_t> indices;
    std::vector<float> values;
    const UnalignedSpan<float> elements = value.elements<float>();
    for (size_t i = 0; i < elements.size(); ++i) {
      if (std::fabs(elements[i]) < params_.threshold || elements[i] == 0) continue;  // NaN is kept.
      indices.push_back(static_cast<int64_t>(i));
      values.push_back(elements[i]);
    }
    const int64_t total = shape.dim(0), kept = static_cast<int64_t>(indices.size());
    if (static_cast<double>(total - kept) < static_cast<double>(params_.min_sparsity) * static_cast<double>(total)) {
      Miss(*weights, NotMatched(absl::StrCat("only ", total - kept, " of its ", total, " weights are below ",
                                             params_.threshold, ", and min_sparsity is ", params_.min_sparsity),
                                "lower min_sparsity or raise threshold"));
      return absl::OkStatus();
    }
    if (indices.empty()) {  // An empty table cannot be initialised.
      indices.push_back(0);
      values.push_back(0);
    }
    std::vector<const Node*> matched(weights->gathers.begin(), weights->gathers.end());
    matched.insert(matched.end(), weights->readers.begin(), weights->readers.end());
    const RewriteScope rewrite(context_, graph_, matched);
    if (!rewrite) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(Node * table,
                        AddTable(source.name(), std::move(indices), std::move(values), weights->gathers.front()));
    for (Node* gather : weights->gathers) PF_RETURN_IF_ERROR(BecomeLookup(gather, table));
    num_gathers_ += static_cast<int64_t>(weights->gathers.size());
    num_kept_ += kept;
    num_weights_ += total;
    return RemoveReaders(*weights);
  }

  absl::StatusOr<Node*> Add(absl::string_view name, Op op, Node* position) {
    return graph_->AddNode(graph_->UniqueName(name), op, position);
  }

  absl::StatusOr<Node*> AddTable(absl::string_view weights, std::vector<int64_t> indices, std::vector<float> values,
                                 Node* position) {
    const int64_t count = static_cast<int64_t>(indices.size());
    const auto add_const = [&](absl::string_view suffix, Tensor value) {
      return graph_->AddConst(graph_->UniqueName(absl::StrCat(weights, suffix)), std::move(value), position);
    };
    PF_ASSIGN_OR_RETURN(Node * keys, add_const("/indices", Tensor::FromVector(Shape({count}), std::move(indices))));
    PF_ASSIGN_OR_RETURN(Node * kept, add_const("/values", Tensor::FromVector(Shape({count}), std::move(values))));
    const bool v2 = params_.hash_table_v2;
    PF_ASSIGN_OR_RETURN(Node * table,
                        Add(absl::StrCat(weights, "/HashTable"), v2 ? ops::kHashTableV2 : ops::kHashTable, position));
    table->SetAttr("key_dtype", AttrValue::Type(DType::kInt64));
    table->SetAttr("value_dtype", AttrValue::Type(DType::kFloat));
    PF_ASSIGN_OR_RETURN(Node * initialise, Add(absl::StrCat(weights, "/InitializeTable"),
                                               v2 ? ops::kInitializeTableV2 : ops::kInitializeTable, position));
    initialise->SetAttr("Tkey", AttrValue::Type(DType::kInt64));
    initialise->SetAttr("Tval", AttrValue::Type(DType::kFloat));
    for (Node* input : {table, keys, kept}) graph_->AddInput(initialise, {input, 0});
    PF_ASSIGN_OR_RETURN(Node * group, InitGroup());
    graph_->AddInput(group, {initialise, kControlPort});
    initialisers_.push_back(initialise);
    return table;
  }

  // Returns the NoOp that fills all tables.
  absl::StatusOr<Node*> InitGroup() {
    Node* group = graph_->Find(params_.group_init_node);
    if (group == nullptr) return graph_->AddNode(params_.group_init_node, ops::kNoOp);
    if (group->op() == ops::kNoOp) return group;
    return absl::InvalidArgumentError(absl::StrCat("parameter 'group_init_node': ", group->Describe(),
                                                   " is there already, expected a NoOp or no node"));
  }

  // Returns `ids`, of type `type`, as int64.
  absl::StatusOr<TensorRef> WideIds(TensorRef ids, DType type, Node* position) {
    if (type == DType::kInt64) return ids;
    const auto [found, is_new] = wide_ids_.try_emplace(ids, nullptr);
    if (is_new) {
      PF_ASSIGN_OR_RETURN(found->second, Add(absl::StrCat(ids.node->name(), "_int64"), ops::kCast, position));
      found->second->SetAttr("SrcT", AttrValue::Type(type));
      found->second->SetAttr("DstT", AttrValue::Type(DType::kInt64));
      graph_->AddInput(found->second, ids);
    }
    return TensorRef{found->second, 0};
  }

  absl::Status BecomeLookup(Node* gather, Node* table) {
    PF_ASSIGN_OR_RETURN(const DType ids_type, TypeAttr(*gather, "Tindices"));
    PF_ASSIGN_OR_RETURN(const TensorRef ids, WideIds(gather->input(1), ids_type, gather));
    const std::string name(gather->name());
    PF_ASSIGN_OR_RETURN(Node * lookup,
                        Add(absl::StrCat(name, "/LookupTableFind"),
                            params_.hash_table_v2 ? ops::kLookupTableFindV2 : ops::kLookupTableFind, gather));
    lookup->SetAttr("Tin", AttrValue::Type(DType::kInt64));
    lookup->SetAttr("Tout", AttrValue::Type(DType::kFloat));
    PF_ASSIGN_OR_RETURN(Node * zero, graph_->AddConst(graph_->UniqueName(absl::StrCat(name, "/Const")),
                                                      Tensor::Scalar<float>(0), gather));
    PF_ASSIGN_OR_RETURN(Node * last, graph_->AddConst(graph_->UniqueName(absl::StrCat(name, "/ExpandDims/Const")),
                                                      Tensor::Scalar<int32_t>(-1), gather));
    for (const TensorRef& input : {TensorRef{table, 0}, ids, TensorRef{zero, 0}}) graph_->AddInput(lookup, input);
    for (int i = gather->num_data_inputs(); i < gather->num_inputs(); ++i) {
      graph_->AddInput(lookup, gather->input(i));
    }
    if (gather->num_data_inputs() == 3) no_longer_read_.push_back(gather->input(2).node);  // The axis.
    graph_->ClearInputs(gather);
    graph_->AddInput(gather, {lookup, 0});
    graph_->AddInput(gather, {last, 0});
    gather->set_op(ops::kExpandDims);
    std::vector<std::string> keys;
    for (const Attr& attr : gather->attrs()) {
      if (!absl::StartsWith(attr.key, "_")) keys.emplace_back(attr.key);
    }
    for (const std::string& key : keys) gather->RemoveAttr(key);
    gather->SetAttr("T", AttrValue::Type(DType::kFloat));
    return absl::OkStatus();
  }

  // Removes the control edges from `node`.
  void RemoveWaiting(Node* node) {
    for (size_t i = node->uses().size(); i-- > 0;) {
      const Use use = node->uses()[i];
      if (use.consumer->input(use.index).is_control()) graph_->RemoveInput(use.consumer, use.index);
    }
  }

  // Removes the readers of the weights and the control edges from them. A variable that is still saved is kept, with
  // the nodes that save and initialise it.
  absl::Status RemoveReaders(const Weights& weights) {
    if (!weights.unneeded.empty()) {
      std::vector<bool> remove(graph_->id_limit(), false);
      for (Node* node : weights.unneeded) {
        for (int i = 0; i < node->num_inputs(); ++i) maybe_unread_.emplace_back(node->input(i).node->name());
        RemoveWaiting(node);
        remove[node->id()] = true;
      }
      PF_RETURN_IF_ERROR(graph_->RemoveNodes(remove));
      num_unneeded_ += static_cast<int64_t>(weights.unneeded.size());
    }
    if (!weights.has_caretaker) {
      for (Node* assignment : weights.assignments) {
        maybe_unread_.emplace_back(assignment->input(1).node->name());
        RemoveWaiting(assignment);
        PF_RETURN_IF_ERROR(graph_->RemoveNode(assignment));
      }
    }
    for (auto reader = weights.readers.rbegin(); reader != weights.readers.rend(); ++reader) {
      const absl::Span<const Use> uses = (*reader)->uses();
      const bool is_read = std::any_of(uses.begin(), uses.end(),
                                       [](const Use& use) { return !use.consumer->input(use.index).is_control(); });
      if (is_read) continue;
      RemoveWaiting(*reader);
      PF_RETURN_IF_ERROR(graph_->RemoveNode(*reader));
    }
    return absl::OkStatus();
  }

  Graph* graph_;
  const Params& params_;
  PassContext* context_;
  std::unique_ptr<VariableSource> checkpoint_;  // Null if none was given.
  std::optional<SavedVariables> saved_;         // Set if there is a checkpoint.
  absl::flat_hash_map<TensorRef, Node*> wide_ids_;
  std::vector<Node*> initialisers_;
  std::vector<Node*> no_longer_read_;
  std::vector<std::string> maybe_unread_;  // Inputs of removed nodes, by name, since they may be removed as well.
  int64_t num_gathers_ = 0, num_kept_ = 0, num_weights_ = 0, num_unneeded_ = 0;
};

absl::StatusOr<int64_t> Sparsify(Graph* graph, const Params& params, PassContext* context) {
  if (params.group_init_node.empty()) {
    return absl::InvalidArgumentError("parameter 'group_init_node' is empty, expected the name of a node");
  }
  return Sparsification(graph, params, context).Run();
}

}  // namespace

// Replaces gathers from a column of mostly zero float weights by lookups in a hash table of the nonzero weights.
//
//   Gather g(Const w, ids)   =>   ExpandDims g(LookupTableFind(HashTable w/HashTable, ids, 0), -1)
//
// The NoOp group_init_node fills the table; run it once before the outputs. An id out of range yields 0, whereas a
// gather fails. int32 ids get a Cast. Gathers from the same weights share a table.
//
// With input_checkpoint, the weights may also be variables. Their values are the ones that a saver in the graph would
// restore, including parts of partitioned variables, or else the values stored under the name of the variable. The
// variable and its initialiser are removed, unless a node saves the variable.
//
// Nodes that read the weights and that no output needs are removed with them, unless they assign or save.
//
// Leaves unchanged weights that are not constants of shape [n, 1] (freeze the graph, or set input_checkpoint), that an
// output needs in another way, or that are a declared output, and gathers along another axis or with batch_dims.
DEFINE_PASS(sparsify_gather) {
  return Pass<Params>("Replaces gathers from mostly zero weights by lookups in a table of the nonzero weights.")
      .Why("Zero weights of a wide model take space in the file and in memory.")
      .Param("input_checkpoint", &Params::input_checkpoint,
             "A training checkpoint with the values of variables: its prefix, one of its files or its folder.")
      .Param("group_init_node", &Params::group_init_node, "The NoOp that fills the tables; created if absent.")
      .Param("threshold", &Params::threshold, "Weights with a magnitude below this value count as zero.", AtLeast(0))
      .Param("min_sparsity", &Params::min_sparsity, "Minimum fraction of zeros; denser weights are left unchanged.",
             Between(0, 1))
      .Param("hash_table_v2", &Params::hash_table_v2, "Use the table ops of TensorFlow 2, with resource handles.")
      .LooksFor({ops::kGather, ops::kGatherV2})
      .Numerics(Changes("weights smaller than the threshold become 0"))
      .Idempotent()
      .Run(Sparsify);
}

}  // namespace permafrost

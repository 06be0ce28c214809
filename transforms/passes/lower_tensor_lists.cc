// Replaces lists of tensors by tensors with one more dimension.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/function_tree.h"
#include "transforms/rewrites/node_expansion.h"

namespace permafrost {
namespace {

// The element shapes of lists may depend on the shapes of items, which may depend on other lists. Each round resolves
// the lists whose items are known; models need one or two.
constexpr int kMostRounds = 4;

bool CreatesList(Op op) { return op == ops::kTensorListReserve || op == ops::kEmptyTensorList; }

// True for an op on lists that has a form on tensors.
bool IsListOp(Op op) {
  return CreatesList(op) || op == ops::kTensorListFromTensor || op == ops::kTensorListSetItem ||
         op == ops::kTensorListGetItem || op == ops::kTensorListStack || op == ops::kTensorListGather ||
         op == ops::kTensorListLength || op == ops::kTensorListPushBack || op == ops::kTensorListPopBack;
}

bool MovesList(Op op) {
  return op == ops::kIdentity || op == ops::kIdentityN || op == ops::kStopGradient || op == ops::kPreventGradient ||
         op == ops::k_Retval || op == ops::k_Arg;
}

DType OutputTypeOf(TensorRef ref) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(*ref.node);
  const bool is_known = types.ok() && ref.port >= 0 && static_cast<size_t>(ref.port) < types->size();
  return is_known ? (*types)[static_cast<size_t>(ref.port)] : DType::kInvalid;
}

bool IsList(TensorRef ref) { return !ref.is_control() && OutputTypeOf(ref) == DType::kVariant; }

// A list as the program passes it around: all tensors that may be the same list, or versions of it.
struct Group {
  std::string obstacle;  // The reason why it stays a list.
  DType dtype = DType::kInvalid;
  std::vector<std::pair<Graph*, TensorRef>> items;  // What is written to it.
  const Node* first = nullptr;                      // A node for messages.
};

// Finds the lists of a program.
class Lists {
 public:
  explicit Lists(FunctionTree* tree) {
    for (FunctionTree::Body* body : tree->Bodies()) Visit(body);
    for (const auto& [ref, index] : index_) {
      Group& group = groups_[Find(index)];
      if (group.first == nullptr || ref.node->name() < group.first->name()) group.first = ref.node;
    }
    for (auto& [index, text] : obstacles_) {
      std::string& obstacle = groups_[Find(index)].obstacle;
      if (obstacle.empty()) obstacle = text;
    }
    for (auto& [index, dtype] : dtypes_) {
      Group& group = groups_[Find(index)];
      if (group.dtype == DType::kInvalid) group.dtype = dtype;
      if (group.dtype != dtype) group.obstacle = "has elements of several types";
    }
    for (auto& [index, item] : items_) groups_[Find(index)].items.push_back(item);
    for (auto& [index, group] : groups_) {
      if (group.obstacle.empty() && group.dtype == DType::kInvalid) group.obstacle = "has elements of unknown type";
    }
  }

  // Returns the group of a list.
  Group& Of(TensorRef ref) { return groups_.at(Find(index_.at(ref))); }
  std::vector<Group*> groups() {
    std::vector<Group*> all;
    for (auto& [index, group] : groups_) all.push_back(&group);
    return all;
  }
  bool empty() const { return groups_.empty(); }
  // All creators, in the order of bodies and nodes.
  const std::vector<std::pair<int, Node*>>& creators() const { return creators_; }

 private:
  int IndexOf(TensorRef ref) {
    const auto [found, is_new] = index_.try_emplace(ref, static_cast<int>(parents_.size()));
    if (is_new) {
      parents_.push_back(found->second);
    }
    return found->second;
  }
  int Find(int index) {
    while (parents_[static_cast<size_t>(index)] != index) {
      int& parent = parents_[static_cast<size_t>(index)];
      parent = parents_[static_cast<size_t>(parent)];
      index = parent;
    }
    return index;
  }
  void Join(TensorRef a, TensorRef b) {
    const int x = Find(IndexOf(a)), y = Find(IndexOf(b));
    parents_[static_cast<size_t>(std::max(x, y))] = std::min(x, y);
  }
  void Block(TensorRef list, std::string text) { obstacles_.emplace_back(IndexOf(list), std::move(text)); }

  void Visit(FunctionTree::Body* body) {
    Graph& graph = *body->graph;
    const bool is_root = body->owned == nullptr;
    absl::flat_hash_map<const Node*, FunctionTree::Call*> calls;
    for (FunctionTree::Call& call : body->calls) calls.emplace(call.node, &call);
    for (Node* node = graph.first(); node != nullptr; node = node->next()) {
      const absl::StatusOr<int> num_outputs = NumOutputs(*node);
      const auto call = calls.find(node);
      const Op op = node->op();
      for (int port = 0; num_outputs.ok() && port < *num_outputs; ++port) {
        if (!IsList({node, port})) continue;
        const int index = IndexOf({node, port});
        if (is_root && graph.IsEndpoint(node)) Block({node, port}, "is an input or output of the graph");
        if (!IsListOp(op) && !MovesList(op) && call == calls.end()) {
          Block({node, port}, absl::StrCat("is a result of ", node->Describe(), ", which has no form on tensors"));
        }
        if (CreatesList(op)) creators_.emplace_back(index, node);
      }
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        if (!IsList(node->input(i))) continue;
        IndexOf(node->input(i));
        if (!IsListOp(op) && !MovesList(op) && call == calls.end()) {
          Block(node->input(i), absl::StrCat("is read by ", node->Describe(), ", which has no form on tensors"));
        }
        if (op == ops::kIdentity || op == ops::kIdentityN || op == ops::kStopGradient || op == ops::kPreventGradient) {
          Join(node->input(i), {node, i});
        }
        if (call != calls.end()) JoinCall(*call->second, i);
      }
      if (!IsListOp(op)) continue;
      if (node->num_data_inputs() != FindSchema(op)->fixed_inputs) {
        if (IsList({node, 0})) Block({node, 0}, "is made by a malformed node");
        for (int i = 0; i < node->num_data_inputs(); ++i) {
          if (IsList(node->input(i))) Block(node->input(i), "is used by a malformed node");
        }
        continue;
      }
      const TensorRef list = IsList(node->input(0)) ? node->input(0) : TensorRef{node, 0};
      if (!IsList(list)) continue;
      if (list.node != node && IsList({node, 0})) Join(list, {node, 0});
      if (const absl::StatusOr<DType> dtype = TypeAttr(*node, "element_dtype"); dtype.ok()) {
        dtypes_.emplace_back(IndexOf(list), *dtype);
      }
      if (op == ops::kTensorListSetItem) {
        items_.push_back({IndexOf(list), {&graph, node->input(2)}});
        if (BoolAttr(*node, "resize_if_index_out_of_bounds").value_or(true)) Block(list, "grows when items are set");
      }
      if (op == ops::kTensorListPushBack) {
        items_.push_back({IndexOf(list), {&graph, node->input(1)}});
      }
    }
  }

  // Input i of the call and what it becomes in the bodies and in the results.
  void JoinCall(const FunctionTree::Call& call, int i) {
    const int arg = i - call.first_arg();
    if (arg < 0) return;
    const size_t index = static_cast<size_t>(arg);
    for (const std::unique_ptr<FunctionTree::Body>& body : call.bodies) {
      Join(call.node->input(i), {ArgsOf(*body->graph)[index], 0});
    }
    if (call.is_loop()) {
      Join(call.node->input(i), {call.node, arg});
      Join(call.node->input(i), RetvalsOf(*call.bodies[1]->graph)[index]->input(0));
    }
    JoinResults(call);
  }

  void JoinResults(const FunctionTree::Call& call) {
    if (call.is_loop()) return;
    for (const std::unique_ptr<FunctionTree::Body>& body : call.bodies) {
      const std::vector<Node*> results = RetvalsOf(*body->graph);
      for (size_t k = 0; k < results.size(); ++k) {
        if (IsList(results[k]->input(0))) Join(results[k]->input(0), {call.node, static_cast<int>(k)});
      }
    }
  }

  std::vector<int> parents_;
  absl::flat_hash_map<TensorRef, int> index_;
  std::map<int, Group> groups_;  // By the smallest index of their tensors, so that the order does not depend on hashes.
  std::vector<std::pair<int, std::string>> obstacles_;
  std::vector<std::pair<int, DType>> dtypes_;
  std::vector<std::pair<int, std::pair<Graph*, TensorRef>>> items_;
  std::vector<std::pair<int, Node*>> creators_;
};

// The element shape of each creator, as far as it is known; empty for an unknown rank. Dimensions from kFirstProbe on
// stand for dimensions of inputs.
using ElementShapes = std::vector<std::optional<Shape>>;

// Dimensions that no model has, one for each unknown dimension of the inputs, while shapes are inferred. A dimension
// inside the program that has such a number is that of the input.
constexpr int64_t kFirstProbe = 1'000'003;  // Primes, so that products and quotients of them do not look alike.
constexpr int64_t kProbes[] = {1'000'003, 1'000'033, 1'000'037, 1'000'039, 1'000'081, 1'000'099,
                               1'000'117, 1'000'121, 1'000'133, 1'000'151, 1'000'159, 1'000'171};
bool IsProbe(int64_t dim) { return std::find(std::begin(kProbes), std::end(kProbes), dim) != std::end(kProbes); }

// Sets the unknown dimensions of the inputs of the root to probes. With `shares_batch`, all first dimensions have one
// probe, for inputs that are combined must have one batch.
void SetProbes(Graph* graph, bool shares_batch) {
  size_t next = shares_batch ? 1 : 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kPlaceholder) continue;
    const absl::StatusOr<Shape> shape = ShapeAttr(*node, "shape");
    if (!shape.ok() || !shape->has_rank()) continue;
    Shape probed = *shape;
    for (int i = 0; i < probed.rank(); ++i) {
      if (probed.dim(i) >= 0) continue;
      if (i == 0 && shares_batch) {
        probed.set_dim(i, kProbes[0]);
      } else if (next < std::size(kProbes)) {
        probed.set_dim(i, kProbes[next++]);
      }
    }
    node->SetAttr("shape", AttrValue::OfShape(probed));
  }
}

// Rewrites the lists of a program.
class Lowering : private NodeExpansion {
 public:
  Lowering(FunctionTree* tree, Lists* lists) : NodeExpansion(nullptr, nullptr), tree_(tree), lists_(lists) {}

  // While element shapes are searched, unknown dimensions become those of Placeholders; afterwards `arg_shapes`, by
  // body and argument, tell where the dimensions are found.
  absl::Status Run(const ElementShapes& shapes, const std::vector<std::vector<Shape>>* arg_shapes) {
    size_t creator = 0;
    for (const auto& [index, node] : lists_->creators()) shape_of_[node] = shapes[creator++];
    const std::vector<FunctionTree::Body*> bodies = tree_->Bodies();
    for (size_t b = 0; b < bodies.size(); ++b) {
      graph_ = bodies[b]->graph;
      arg_shapes_ = arg_shapes == nullptr ? nullptr : &(*arg_shapes)[b];
      for (Node* node : graph_->Nodes()) PF_RETURN_IF_ERROR(Lower(node));
    }
    for (FunctionTree::Body* body : bodies) {
      for (FunctionTree::Call& call : body->calls) FunctionTree::SetTypes(&call);
    }
    return absl::OkStatus();
  }

  int64_t num_nodes() const { return num_nodes_; }

 private:
  bool IsLowered(TensorRef ref) { return was_list_.contains(ref) || (IsList(ref) && lists_->Of(ref).obstacle.empty()); }

  absl::Status Lower(Node* node) {
    node_ = node;
    const Op op = node->op();
    if (MovesList(op)) return Retype();
    if (!IsListOp(op) || node->num_data_inputs() == 0) return absl::OkStatus();
    const bool reads = IsLowered(node->input(0));
    const bool makes = IsList({node, 0}) && IsLowered({node, 0});
    if (!reads && !makes) return absl::OkStatus();
    const DType dtype = reads ? DTypeOfList(node->input(0)) : DTypeOfList({node, 0});
    const absl::StatusOr<int> num_outputs = NumOutputs(*node);
    for (int port = 0; num_outputs.ok() && port < *num_outputs; ++port) Remember({node, port});
    ++num_nodes_;
    const AttrValue t = AttrValue::Type(dtype), int32 = AttrValue::Type(DType::kInt32);
    const TensorRef list = node->input(0);
    if (CreatesList(op)) return Create(dtype);
    if (op == ops::kTensorListFromTensor || op == ops::kTensorListStack) {
      return Become(ops::kIdentity, {list}, {{"T", t}});
    }
    if (op == ops::kTensorListSetItem) {
      PF_ASSIGN_OR_RETURN(const TensorRef shape, Ints("index_shape", {1, 1}));
      PF_ASSIGN_OR_RETURN(const TensorRef index,
                          Add("index", ops::kReshape, {node->input(1), shape}, {{"T", int32}, {"Tshape", int32}}));
      const TensorRef item = node->input(2);
      PF_ASSIGN_OR_RETURN(const TensorRef axis, Int("axis", 0));
      PF_ASSIGN_OR_RETURN(const TensorRef slice,
                          Add("slice", ops::kExpandDims, {item, axis}, {{"T", t}, {"Tdim", int32}}));
      return Become(ops::kTensorScatterUpdate, {list, index, slice}, {{"T", t}, {"Tindices", int32}});
    }
    if (op == ops::kTensorListGetItem || op == ops::kTensorListGather) {
      const TensorRef index = node->input(1);
      PF_ASSIGN_OR_RETURN(const TensorRef axis, Int("axis", 0));
      return Become(ops::kGatherV2, {list, index, axis}, {{"Taxis", int32}, {"Tindices", int32}, {"Tparams", t}});
    }
    if (op == ops::kTensorListLength) {
      PF_ASSIGN_OR_RETURN(const TensorRef shape, Add("shape", ops::kShape, {list}, {{"T", t}, {"out_type", int32}}));
      return Slice(shape, 0, DType::kInt32);
    }
    if (op == ops::kTensorListPushBack) {
      const TensorRef item = node->input(1);
      PF_ASSIGN_OR_RETURN(const TensorRef axis, Int("axis", 0));
      PF_ASSIGN_OR_RETURN(const TensorRef slice,
                          Add("slice", ops::kExpandDims, {item, axis}, {{"T", t}, {"Tdim", int32}}));
      return Become(ops::kConcatV2, {list, slice, axis}, {{"N", AttrValue::Int(2)}, {"T", t}, {"Tidx", int32}});
    }
    // TensorListPopBack: the list without its last item, and the item.
    PF_ASSIGN_OR_RETURN(const TensorRef first, Ints("first", {0}));
    PF_ASSIGN_OR_RETURN(const TensorRef last, Ints("last", {-1}));
    PF_ASSIGN_OR_RETURN(const TensorRef end, Ints("end", {0}));
    PF_ASSIGN_OR_RETURN(const TensorRef one, Ints("one", {1}));
    const AttrValue yes = AttrValue::Int(1);
    PF_ASSIGN_OR_RETURN(const TensorRef item,
                        Add("item", ops::kStridedSlice, {list, last, end, one},
                            {{"Index", int32}, {"T", t}, {"end_mask", yes}, {"shrink_axis_mask", yes}}));
    graph_->ReplaceUses({node, 1}, item);
    return Become(ops::kStridedSlice, {list, first, last, one}, {{"Index", int32}, {"T", t}});
  }

  // Turns the node into element `at` of a vector.
  absl::Status Slice(TensorRef vector, int32_t at, DType dtype) {
    PF_ASSIGN_OR_RETURN(const TensorRef begin, Ints("begin", {at}));
    PF_ASSIGN_OR_RETURN(const TensorRef end, Ints("end", {at + 1}));
    PF_ASSIGN_OR_RETURN(const TensorRef one, Ints("stride", {1}));
    return Become(ops::kStridedSlice, {vector, begin, end, one},
                  {{"Index", AttrValue::Type(DType::kInt32)},
                   {"T", AttrValue::Type(dtype)},
                   {"shrink_axis_mask", AttrValue::Int(1)}});
  }

  void Remember(TensorRef ref) {
    if (IsList(ref) && lists_->Of(ref).obstacle.empty()) was_list_.emplace(ref, lists_->Of(ref).dtype);
  }
  DType DTypeOfList(TensorRef ref) {
    const auto found = was_list_.find(ref);
    return found != was_list_.end() ? found->second : lists_->Of(ref).dtype;
  }

  // Gives a node that moves lists the type of the tensors.
  absl::Status Retype() {
    if (node_->op() == ops::kIdentityN) {
      PF_ASSIGN_OR_RETURN(std::vector<DType> types, TypeListAttr(*node_, "T"));
      bool is_changed = false;
      for (size_t i = 0; i < types.size(); ++i) {
        const TensorRef ref{node_, static_cast<int>(i)};
        if (types[i] != DType::kVariant || !IsLowered(ref)) continue;
        Remember(ref);
        types[i] = DTypeOfList(ref);
        is_changed = true;
      }
      if (is_changed) node_->SetAttr("T", AttrValue::TypeList(types));
      return absl::OkStatus();
    }
    if (TypeAttr(*node_, "T").value_or(DType::kInvalid) != DType::kVariant) return absl::OkStatus();
    const bool is_result = node_->op() == ops::k_Retval;
    const TensorRef ref = is_result ? node_->input(0) : TensorRef{node_, 0};
    if (!IsLowered(ref)) return absl::OkStatus();
    if (!is_result) Remember(ref);
    node_->SetAttr("T", AttrValue::Type(DTypeOfList(ref)));
    node_->RemoveAttr("_output_shapes");
    return absl::OkStatus();
  }

  // Zeros. TensorFlow also returns zeros for items that were not set.
  absl::Status Create(DType dtype) {
    const std::optional<Shape> shape = shape_of_[node_];
    const bool is_empty = node_->op() == ops::kEmptyTensorList;
    TensorRef count;
    if (is_empty) {
      PF_ASSIGN_OR_RETURN(count, Int("count", 0));
    } else {
      count = node_->input(1);
    }
    TensorRef dims;
    const AttrValue int32 = AttrValue::Type(DType::kInt32);
    if (shape.has_value()) {
      std::vector<TensorRef> list = {count};
      for (int i = 0; i < shape->rank(); ++i) {
        PF_ASSIGN_OR_RETURN(list.emplace_back(), Dim(i, shape->dim(i)));
      }
      const auto num = static_cast<int64_t>(list.size());
      PF_ASSIGN_OR_RETURN(dims, Add("dims", ops::kPack, list, {{"N", AttrValue::Int(num)}, {"T", int32}}));
    } else {
      PF_ASSIGN_OR_RETURN(dims, Add("dims", ops::kPlaceholder, {},
                                    {{"dtype", int32}, {"shape", AttrValue::OfShape(Shape({kUnknownDim}))}}));
    }
    TensorRef zero;
    if (dtype == DType::kString) {
      PF_ASSIGN_OR_RETURN(zero, Const("zero", Tensor::FromStrings(Shape(), {""})));
    } else {
      char* data = nullptr;
      PF_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(dtype, Shape(), &data));
      std::fill_n(data, SizeOf(dtype), '\0');
      PF_ASSIGN_OR_RETURN(zero, Const("zero", std::move(value)));
    }
    return Become(ops::kFill, {dims, zero}, {{"T", AttrValue::Type(dtype)}, {"index_type", int32}});
  }

  absl::StatusOr<TensorRef> Dim(int i, int64_t dim) {
    const std::string suffix = absl::StrCat("dim_", i);
    const AttrValue int32 = AttrValue::Type(DType::kInt32);
    if (dim >= 0 && (arg_shapes_ == nullptr || !IsProbe(dim))) return Int(suffix, dim);
    if (arg_shapes_ == nullptr) {
      return Add(suffix, ops::kPlaceholder, {}, {{"dtype", int32}, {"shape", AttrValue::OfShape(Shape())}});
    }
    // The dimension of an input or an argument of this graph.
    const std::vector<Node*> sources = SourcesOf(*graph_);
    for (size_t k = 0; k < sources.size() && k < arg_shapes_->size(); ++k) {
      const Shape& source = (*arg_shapes_)[k];
      for (int axis = 0; source.has_rank() && axis < source.rank(); ++axis) {
        if (source.dim(axis) != dim) continue;
        const DType dtype = OutputTypeOf({sources[k], 0});
        PF_ASSIGN_OR_RETURN(const TensorRef shape,
                            Add(absl::StrCat(suffix, "_shape"), ops::kShape, {TensorRef{sources[k], 0}},
                                {{"T", AttrValue::Type(dtype)}, {"out_type", int32}}));
        PF_ASSIGN_OR_RETURN(const TensorRef begin, Ints(absl::StrCat(suffix, "_begin"), {axis}));
        PF_ASSIGN_OR_RETURN(const TensorRef end, Ints(absl::StrCat(suffix, "_end"), {axis + 1}));
        PF_ASSIGN_OR_RETURN(const TensorRef one, Ints(absl::StrCat(suffix, "_stride"), {1}));
        return Add(suffix, ops::kStridedSlice, {shape, begin, end, one},
                   {{"Index", int32}, {"T", int32}, {"shrink_axis_mask", AttrValue::Int(1)}});
      }
    }
    return absl::InternalError(absl::StrCat(node_->Describe(), ": no input has the dimension"));
  }

 public:
  // The nodes whose shapes may have the dimensions of items: inputs of the graph, or arguments of the function.
  static std::vector<Node*> SourcesOf(const Graph& graph) {
    std::vector<Node*> sources;
    for (Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (node->op() == ops::kPlaceholder || node->op() == ops::k_Arg) sources.push_back(node);
    }
    // The choice among equal dimensions does not depend on the order of the file.
    std::sort(sources.begin(), sources.end(), [](const Node* a, const Node* b) { return a->name() < b->name(); });
    return sources;
  }

 private:
  FunctionTree* tree_;
  Lists* lists_;
  const std::vector<Shape>* arg_shapes_ = nullptr;
  absl::flat_hash_map<const Node*, std::optional<Shape>> shape_of_;  // Of the elements, by creator.
  absl::flat_hash_map<TensorRef, DType> was_list_;                   // Tensors that were lists.
  int64_t num_nodes_ = 0;
};

// Returns the shape of both; a dimension that only one knows is known. Nothing if they contradict each other.
std::optional<Shape> Merged(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a.has_value()) return b;
  if (!b.has_value() || a->rank() != b->rank()) return a;
  Shape merged = *a;
  for (int i = 0; i < a->rank(); ++i) {
    if (merged.dim(i) < 0) merged.set_dim(i, b->dim(i));
  }
  return merged;
}

// Returns the element shape that the creator of a list declares.
std::optional<Shape> DeclaredShape(const Node& creator) {
  if (creator.num_data_inputs() == 0) return std::nullopt;
  const std::optional<std::vector<int64_t>> dims = IntegerVectorConstant(creator.input(0));
  if (!dims.has_value()) return std::nullopt;
  Shape shape;
  for (const int64_t dim : *dims) shape.AddDim(dim < 0 ? kUnknownDim : dim);
  return shape;
}

struct Analysis {
  ElementShapes shapes;                        // By creator.
  std::vector<std::vector<Shape>> arg_shapes;  // By body, of Lowering::SourcesOf.
};

// Finds the shapes of elements: those that are declared, completed by those of the items that are written. Works on
// copies of the graph, in which the lists that are known are tensors already.
absl::StatusOr<Analysis> Analyse(const Graph& graph, bool shares_batch) {
  Analysis analysis;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::unique_ptr<Graph> copy = graph.Clone();
    PassContext silent;
    SetProbes(copy.get(), shares_batch);
    PF_ASSIGN_OR_RETURN(FunctionTree tree, FunctionTree::Expand(copy.get(), &silent));
    Lists lists(&tree);
    if (round == 0) {
      for (const auto& [index, node] : lists.creators()) analysis.shapes.push_back(DeclaredShape(*node));
    }
    absl::flat_hash_map<const Node*, size_t> number_of;
    std::vector<Group*> group_of;
    for (const auto& [index, node] : lists.creators()) {
      number_of.emplace(node, group_of.size());
      group_of.push_back(&lists.Of({node, 0}));
    }
    // Sources are counted before the search adds Placeholders.
    std::vector<std::vector<Node*>> sources;
    for (FunctionTree::Body* body : tree.Bodies()) sources.push_back(Lowering::SourcesOf(*body->graph));
    Lowering lowering(&tree, &lists);
    PF_RETURN_IF_ERROR(lowering.Run(analysis.shapes, nullptr));
    PF_RETURN_IF_ERROR(tree.InferShapes());
    absl::flat_hash_map<const Graph*, ShapeMap> shapes;
    std::vector<std::vector<Shape>> arg_shapes;
    const std::vector<FunctionTree::Body*> bodies = tree.Bodies();
    for (size_t b = 0; b < bodies.size(); ++b) {
      absl::StatusOr<ShapeMap> inferred = InferShapes(*bodies[b]->graph);
      if (!inferred.ok()) inferred = ShapeMap();
      std::vector<Shape> found;
      for (Node* source : sources[b]) found.push_back(inferred->Of({source, 0}));
      arg_shapes.push_back(std::move(found));
      shapes.emplace(bodies[b]->graph, *std::move(inferred));
    }
    ElementShapes next = analysis.shapes;
    for (size_t k = 0; k < group_of.size(); ++k) {
      for (const auto& [body, item] : group_of[k]->items) {
        const Shape shape = shapes.at(body).Of(item);
        next[k] = Merged(next[k], shape.has_rank() ? std::optional<Shape>(shape) : std::nullopt);
      }
    }
    const bool is_changed = next != analysis.shapes;
    analysis.shapes = std::move(next);
    analysis.arg_shapes = std::move(arg_shapes);
    if (!is_changed) break;
  }
  return analysis;
}

size_t NumKnown(const Analysis& analysis) {
  return static_cast<size_t>(std::count_if(analysis.shapes.begin(), analysis.shapes.end(), [](const auto& shape) {
    return shape.has_value() && shape->IsFullyKnown();
  }));
}

absl::StatusOr<int64_t> Lower(Graph* graph, const NoParams&, PassContext* context) {
  PF_ASSIGN_OR_RETURN(FunctionTree tree, FunctionTree::Expand(graph, context));
  Lists lists(&tree);
  if (lists.empty()) return 0;
  PF_ASSIGN_OR_RETURN(Analysis analysis, Analyse(*graph, /*shares_batch=*/false));
  if (NumKnown(analysis) < analysis.shapes.size()) {
    PF_ASSIGN_OR_RETURN(Analysis other, Analyse(*graph, /*shares_batch=*/true));
    if (NumKnown(other) > NumKnown(analysis)) analysis = std::move(other);
  }
  const std::vector<FunctionTree::Body*> bodies = tree.Bodies();
  absl::flat_hash_map<const Graph*, size_t> body_of;
  for (size_t b = 0; b < bodies.size(); ++b) body_of.emplace(bodies[b]->graph, b);
  for (size_t k = 0; k < lists.creators().size(); ++k) {
    Node* creator = lists.creators()[k].second;
    Group& group = lists.Of({creator, 0});
    if (!group.obstacle.empty()) continue;
    const std::optional<Shape>& shape = analysis.shapes[k];
    if (!shape.has_value()) {
      group.obstacle = "has elements of unknown rank";
      continue;
    }
    for (int i = 0; i < shape->rank(); ++i) {
      const int64_t dim = shape->dim(i);
      bool is_found = dim >= 0 && !IsProbe(dim) && dim < kFirstProbe;
      if (IsProbe(dim)) {
        for (const Shape& source : analysis.arg_shapes[body_of.at(&creator->graph())]) {
          for (int axis = 0; source.has_rank() && axis < source.rank(); ++axis) is_found |= source.dim(axis) == dim;
        }
      }
      if (!is_found) {
        group.obstacle = absl::StrCat("has elements of shape ", shape->ToString(), ", whose dimension ", i,
                                      " is not that of an input");
      }
    }
  }
  bool is_any = false;
  for (const Group* group : lists.groups()) {
    is_any |= group->obstacle.empty();
    if (!group->obstacle.empty()) context->MissIfWanted(*group->first, "the list ", group->obstacle);
  }
  if (!is_any) return 0;
  const RewriteScope rewrite(context, graph, {graph->first()});
  if (!rewrite) return 0;
  Lowering lowering(&tree, &lists);
  PF_RETURN_IF_ERROR(lowering.Run(analysis.shapes, &analysis.arg_shapes));
  PF_RETURN_IF_ERROR(tree.InferShapes());
  PF_RETURN_IF_ERROR(tree.Store());
  context->Note(absl::StrCat("replaced ", lowering.num_nodes(), " list operations by operations on tensors"));
  return 1;
}

}  // namespace

// Replaces lists of tensors (TensorList ops), which loops read and write, by tensors with one more dimension.
//
//   TensorListFromTensor(x), TensorListStack(x)  =>   x
//   TensorListReserve(n items of shape s)        =>   zeros of shape [n, s]
//   TensorListGetItem(l, i)                      =>   GatherV2(l, i)
//   TensorListSetItem(l, i, x)                   =>   TensorScatterUpdate(l, [[i]], [x])
//   TensorListPushBack(l, x)                     =>   ConcatV2(l, [x])
//
// Arguments and results of branches and loops change their types; each call gets functions of its own. The elements of
// a list need one shape: the declared one, completed by the shapes of the items. A dimension that only an input
// determines, such as the batch, is read from the input when the model runs.
//
// Leaves unchanged lists whose element shape is not known, lists of lists, inputs and outputs of the graph, and lists
// that other ops use (TensorListConcat, TensorListSplit, TensorListScatter, TensorListResize).
DEFINE_PASS(lower_tensor_lists) {
  return Pass<NoParams>("Replaces lists of tensors by tensors with one more dimension.")
      .Why("Runtimes without TensorFlow's lists can then run recurrent layers and other loops.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Lower);
}

}  // namespace permafrost

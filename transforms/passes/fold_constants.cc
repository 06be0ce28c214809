// Folds nodes that do not depend on inputs into constants, and removes nodes that the outputs do not need.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/known_integers.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/body_copy.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/constant_evaluation.h"
#include "transforms/rewrites/function_bodies.h"
#include "transforms/rewrites/function_evaluation.h"

namespace permafrost {
namespace {

struct Params {
  bool clear_output_shapes = true;
  std::vector<std::string> exclude_op;
  std::vector<std::string> exclude_node;
  int64_t max_constant_size_in_bytes = 10 * 1024 * 1024;
};

constexpr absl::string_view kOutputShapes = "_output_shapes";

absl::Status CheckInterface(const Graph& graph) {
  if (graph.outputs().empty()) {
    return absl::InvalidArgumentError("no outputs are given: must specify at least one target to fetch or execute");
  }
  absl::flat_hash_set<TensorRef> fed;
  for (const Endpoint& input : graph.inputs()) {
    if (input.node == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("input '", input.text, "' is not a node of the graph"));
    }
    if (!fed.insert({input.node, input.port}).second) {
      return absl::InvalidArgumentError(absl::StrCat("input '", input.text, "' is fed more than once"));
    }
    const Op op = input.node->op();
    if (op == ops::kPlaceholder || op == ops::kPlaceholderV2 || op == ops::kPlaceholderWithDefault) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.node->name(),
                     "' was expected to be a Placeholder or PlaceholderWithDefault op, but "
                     "was ",
                     op.name(), " (strip_unused_nodes makes it one)"));
  }
  for (const Endpoint& output : graph.outputs()) {
    if (!fed.contains({output.node, output.port})) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", output.text, "' is both fed and fetched"));
  }
  return absl::OkStatus();
}

// Replaces computed values by constants.
class Replacement {
 public:
  Replacement(Graph* graph, const ConstantEvaluation& evaluation, PassContext* context)
      : graph_(graph), evaluation_(evaluation), context_(context) {}

  // `needed` is in topological order.
  absl::Status Run(const std::vector<Node*>& needed) {
    if (graph_->lineage() != nullptr) GatherOrigins(needed);
    std::vector<TensorRef> read;
    for (Node* node : needed) {
      const auto& value = evaluation_.of(*node);
      const bool becomes_const = graph_->IsOutput(node) && evaluation_.CanBecomeConst(*node);
      if (value.is_constant && (node->op() == ops::kConst || becomes_const || !graph_->IsOutput(node))) continue;
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        const TensorRef ref = node->input(i);
        const bool is_output = graph_->IsOutput(ref.node) && evaluation_.CanBecomeConst(*ref.node);
        if (evaluation_.of(*ref.node).is_constant && ref.node->op() != ops::kConst && !is_output) read.push_back(ref);
      }
      DropControls(node);
    }
    std::sort(read.begin(), read.end(), [](const TensorRef& a, const TensorRef& b) {
      return std::make_pair(a.node->name(), a.port) < std::make_pair(b.node->name(), b.port);
    });
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const TensorRef& ref : read) PF_RETURN_IF_ERROR(Replace(ref));
    for (Node* node : needed) {
      if (!graph_->IsOutput(node) || !evaluation_.CanBecomeConst(*node)) continue;
      if (context_->AllowRewrite(*node)) BecomeConst(node);
    }
    return absl::OkStatus();
  }

  int64_t rewrites() const { return rewrites_; }
  int64_t constants() const { return constants_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // Records as origins of a computed node all nodes that were evaluated for it.
  void GatherOrigins(const std::vector<Node*>& needed) {
    for (Node* node : needed) {
      const bool stays = graph_->IsOutput(node) && !evaluation_.CanBecomeConst(*node);
      if (!evaluation_.of(*node).is_constant || stays) continue;
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        Node* input = node->input(i).node;
        if (evaluation_.of(*input).is_constant) graph_->AddOrigins(node, input);
      }
    }
  }

  void AddControls(Node* node, const ConstantEvaluation::Value& value) {
    if (value.controls == nullptr) return;
    for (Node* control : *value.controls) graph_->AddControlInput(node, control);
  }

  // Removes control edges from a constant. Its users wait for its control inputs instead.
  void DropControls(Node* node) {
    bool is_allowed = false;
    for (int i = node->num_inputs() - 1; i >= node->num_data_inputs(); --i) {
      Node* producer = node->input(i).node;
      const auto& value = evaluation_.of(*producer);
      if (!value.is_constant || producer->op() == ops::kConst || graph_->IsOutput(producer)) continue;
      if (!is_allowed && !context_->AllowRewrite(*node)) return;
      is_allowed = true;
      graph_->RemoveInput(node, i);
      AddControls(node, value);
      ++rewrites_;
    }
  }

  absl::Status Replace(TensorRef ref) {
    const RewriteScope rewrite(context_, graph_, {ref.node});
    if (!rewrite) return absl::OkStatus();
    const auto& value = evaluation_.of(*ref.node);
    Node* made = nullptr;
    // Readers of one Const share the replacement: the Const itself if it is kept in any case.
    Node** shared = nullptr;
    if (value.root != nullptr && value.controls == evaluation_.of(*value.root).controls) {
      shared = &by_root_[value.root];
      if (*shared == nullptr && evaluation_.of(*value.root).is_read) *shared = value.root;
      made = *shared;
    }
    if (made == nullptr) {
      // Named as by TensorFlow's pass, whose second number counts known shapes as well.
      const std::string name =
          absl::StrCat(ref.node->name(), "/_", constants_, "__cf__", constants_ + evaluation_.num_known_shapes());
      PF_ASSIGN_OR_RETURN(made, graph_->AddNode(graph_->UniqueName(name), ops::kConst, ref.node));
      if (value.root != nullptr) {
        for (const absl::string_view key : {"dtype", "value"}) {
          if (const AttrValue* attr = value.root->FindAttr(key); attr != nullptr) made->SetAttr(key, *attr);
        }
      } else {
        SetValue(made, value.outputs[ref.port]);
      }
      AddControls(made, value);
      ++constants_;
      if (shared != nullptr) *shared = made;
    }
    graph_->AddOrigins(made, ref.node);
    graph_->ReplaceUses(ref, {made, 0});
    ++rewrites_;
    return absl::OkStatus();
  }

  void BecomeConst(Node* node) {
    const auto& value = evaluation_.of(*node);
    graph_->ClearInputs(node);
    node->set_op(ops::kConst);
    node->ClearAttrs();
    SetValue(node, value.outputs[0]);
    AddControls(node, value);
    ++constants_;
    ++rewrites_;
  }

  void SetValue(Node* node, const Tensor& tensor) {
    bytes_ += tensor.bytes().size();
    node->SetAttr("dtype", AttrValue::Type(tensor.dtype()));
    node->SetAttr("value", AttrValue::OfTensor(tensor));
  }

  Graph* graph_;
  const ConstantEvaluation& evaluation_;
  PassContext* context_;
  absl::flat_hash_map<const Node*, Node*> by_root_;
  int64_t rewrites_ = 0;
  int64_t constants_ = 0;
  uint64_t bytes_ = 0;
};

// Removes nodes that no output needs, except the inputs. Returns the number of removed nodes.
absl::StatusOr<int64_t> Prune(Graph* graph, const std::vector<Node*>& outputs, const std::vector<bool>& is_input) {
  std::vector<bool> stop = is_input;
  stop.resize(graph->id_limit(), false);
  std::vector<bool> remove = ReachedBackwards(*graph, outputs, stop);
  KeepConstantInitializers(*graph, &remove);
  remove.flip();
  int64_t removed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (stop[node->id()]) {
      remove[node->id()] = false;
      // The producers of an input are not needed if it is fed.
      for (int i = node->num_inputs() - 1; i >= 0; --i) {
        if (remove[node->input(i).node->id()]) graph->RemoveInput(node, i);
      }
    }
    if (remove[node->id()]) ++removed;
  }
  PF_RETURN_IF_ERROR(graph->RemoveNodes(remove));
  return removed;
}

// Gives each Reshape of which all dimensions but one are known a constant shape with -1 for the unknown dimension,
// which follows from the number of elements. Returns the number of changed nodes. `order` holds the needed nodes. Does
// not apply to graphs with control flow, where the shape determines the frame of the node and whether it runs.
absl::StatusOr<int64_t> ReshapeToOpenDimension(Graph* graph, const std::vector<Node*>& order,
                                               const ValueSource& integers, PassContext* context) {
  for (const Node* node : order) {
    const OpSchema* schema = FindSchema(node->op());
    if (schema != nullptr && schema->Is(kControlFlow)) return 0;
  }
  int64_t changed = 0;
  for (Node* node : order) {
    if (node->op() != ops::kReshape || node->num_data_inputs() != 2 || graph->IsInput(node)) continue;
    const TensorRef shape = node->input(1);
    if (shape.node->op() == ops::kConst || graph->IsInput(shape.node)) continue;
    const KnownIntegers* known = integers.Integers(shape);
    if (known == nullptr || known->shape.rank() != 1) continue;
    std::vector<int64_t> dims = known->elements;
    if (std::count(dims.begin(), dims.end(), KnownIntegers::kUnknown) != 1) continue;
    // -1 is ambiguous next to a dimension of 0, and invalid next to another -1.
    if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d != KnownIntegers::kUnknown && d <= 0; }))
      continue;
    std::replace(dims.begin(), dims.end(), KnownIntegers::kUnknown, int64_t{-1});
    const absl::StatusOr<DType> type = TypeAttr(*node, "Tshape");
    if (!type.ok()) continue;
    const RewriteScope rewrite(context, graph, {node, shape.node});
    if (!rewrite) break;
    const Shape vector({static_cast<int64_t>(dims.size())});
    Tensor value = *type == DType::kInt64 ? Tensor::FromVector(vector, dims)
                                          : Tensor::FromVector(vector, std::vector<int32_t>(dims.begin(), dims.end()));
    PF_ASSIGN_OR_RETURN(
        Node * made, graph->AddConst(graph->UniqueName(absl::StrCat(node->name(), "/shape")), std::move(value), node));
    graph->SetInput(node, 1, {made, 0});
    ++changed;
  }
  return changed;
}

// Folds constants in one body, and returns the number of new constants.
absl::StatusOr<int64_t> FoldBody(Graph* body, const EvaluationLimits& limits, FunctionEvaluation* functions,
                                 PassContext* context) {
  // Nodes with side effects run even if no output needs them.
  std::vector<Node*> roots;
  std::vector<bool> is_arg(body->id_limit(), false);
  for (const Endpoint& input : body->inputs()) is_arg[input.node->id()] = true;
  for (Node* node = body->first(); node != nullptr; node = node->next()) {
    if (body->IsOutput(node) || HasEffect(*node)) roots.push_back(node);
  }
  const absl::StatusOr<ShapesAndIntegers> known = InferShapesAndIntegers(*body);
  const std::vector<bool> is_needed = ReachedBackwards(*body, roots, is_arg);
  PF_ASSIGN_OR_RETURN(std::vector<Node*> order, StableTopologicalOrder(*body));
  order.erase(std::remove_if(order.begin(), order.end(), [&](const Node* node) { return !is_needed[node->id()]; }),
              order.end());
  ConstantEvaluation evaluation(body, limits, known.ok() ? &*known : nullptr, functions, context);
  PF_RETURN_IF_ERROR(evaluation.Run(order, is_needed));
  Replacement replacement(body, evaluation, context);
  PF_RETURN_IF_ERROR(replacement.Run(order));
  int64_t constants = replacement.constants();
  if (known.ok()) {
    PF_ASSIGN_OR_RETURN(const int64_t reshapes, ReshapeToOpenDimension(body, order, *known->integers, context));
    constants += reshapes;
  }
  if (constants == 0) return 0;
  PF_RETURN_IF_ERROR(Prune(body, roots, is_arg).status());
  DropDanglingColocations(body);
  return constants;
}

absl::StatusOr<int64_t> Fold(Graph* graph, const Params& params, PassContext* context) {
  PF_RETURN_IF_ERROR(CheckInterface(*graph));
  int64_t rewrites = 0;
  const Node& about = *graph->outputs()[0].node;  // Notes about the whole graph are attributed to its first output.
  if (params.clear_output_shapes && context->AllowRewrite(about)) {
    for (Node* node = graph->first(); node != nullptr; node = node->next()) {
      if (!graph->IsInput(node) && node->RemoveAttr(kOutputShapes)) ++rewrites;
    }
  }
  std::vector<bool> is_input(graph->id_limit(), false);
  for (const Endpoint& input : graph->inputs()) {
    is_input[input.node->id()] = true;
    if (input.node->op() != ops::kPlaceholderWithDefault || !context->AllowRewrite(*input.node)) continue;
    input.node->set_op(ops::kPlaceholder);
    graph->ClearInputs(input.node);
    ++rewrites;
  }
  std::vector<Node*> outputs;
  for (const Endpoint& output : graph->outputs()) outputs.push_back(output.node);

  ShapeInferenceOptions shape_options;
  shape_options.use_output_shapes_attr = !params.clear_output_shapes;
  const absl::StatusOr<ShapesAndIntegers> known = InferShapesAndIntegers(*graph, shape_options);
  if (!known.ok()) context->Note(absl::StrCat("without shapes, since ", known.status().message()));

  EvaluationLimits limits;
  limits.exclude_ops.insert(params.exclude_op.begin(), params.exclude_op.end());
  limits.exclude_nodes.insert(params.exclude_node.begin(), params.exclude_node.end());
  limits.max_bytes = params.max_constant_size_in_bytes;
  const std::vector<bool> is_needed = ReachedBackwards(*graph, outputs, is_input);
  PF_ASSIGN_OR_RETURN(std::vector<Node*> order, StableTopologicalOrder(*graph));
  order.erase(std::remove_if(order.begin(), order.end(), [&](const Node* node) { return !is_needed[node->id()]; }),
              order.end());
  const absl::StatusOr<FunctionLibrary> library = FunctionLibrary::Of(*graph);
  std::optional<FunctionEvaluation> functions;
  if (!library.ok()) context->Note(absl::StrCat("without functions, since ", library.status().message()));
  if (library.ok() && context->evaluator != nullptr) functions.emplace(*library, limits.exclude_ops, context);
  FunctionEvaluation* const functions_or_null = functions.has_value() ? &*functions : nullptr;
  ConstantEvaluation evaluation(graph, limits, known.ok() ? &*known : nullptr, functions_or_null, context);
  PF_RETURN_IF_ERROR(evaluation.Run(order, is_needed));

  Replacement replacement(graph, evaluation, context);
  PF_RETURN_IF_ERROR(replacement.Run(order));
  rewrites += replacement.rewrites();
  if (known.ok()) {
    PF_ASSIGN_OR_RETURN(const int64_t reshapes, ReshapeToOpenDimension(graph, order, *known->integers, context));
    if (reshapes > 0) context->Note(absl::StrCat("Reshape nodes with -1 in the place of a computed size: ", reshapes));
    rewrites += reshapes;
  }
  int64_t removed = 0;
  if (context->AllowRewrite(about)) {
    PF_ASSIGN_OR_RETURN(removed, Prune(graph, outputs, is_input));
  }
  rewrites += removed;
  if (functions_or_null != nullptr && !library->empty()) {
    PF_ASSIGN_OR_RETURN(const int64_t in_bodies, EditFunctionBodies(graph, context, [&](Graph* body) {
                          return FoldBody(body, limits, functions_or_null, context);
                        }));
    if (in_bodies > 0) context->Note(absl::StrCat("constants in bodies of functions: ", in_bodies));
    rewrites += in_bodies;
  }
  if (rewrites == 0) return 0;
  if (removed > 0) DropDanglingColocations(graph);
  context->Note(absl::StrCat("computed nodes: ", evaluation.num_evaluated(),
                             "; not computed though their inputs are constant: ", evaluation.num_refused(),
                             " (--explain says why); constants in their place: ", replacement.constants(), ", of ",
                             replacement.bytes(), " bytes; nodes removed: ", removed));
  return rewrites;
}

}  // namespace

// Computes each node that does not depend on the inputs and replaces it by a constant.
//
//   Relu r(Add a(Const, Const), x)   =>   Relu r(Const a/_0__cf__0, x)
//
// Shape, Rank and Size are constant if the shape of their input is known. Shape arithmetic (slices, Pack, ConcatV2,
// elementwise ops) is constant if the dimensions that it needs are known. If all dimensions but one in the shape of a
// Reshape are known, the other becomes -1. A constant output becomes a Const with the name of the output. Nodes that no
// output needs are removed. Readers of one Const through several Identity nodes share it. A function call, If, Case or
// While with constant inputs is computed as one node. Nodes in the bodies of functions that the graph may call are
// folded as well.
//
// Leaves unchanged nodes that are random, stateful or control flow, that are excluded, whose result exceeds the size
// limit, or that the runtime cannot compute. Each of these is reported as a near miss, and the other nodes are folded.
DEFINE_PASS(fold_constants) {
  return Pass<Params>(
             "Computes nodes that do not depend on the inputs, and removes nodes that the outputs do not need.")
      .Why("Constant subgraphs need not be computed in every run, and nodes used only there need not be shipped.")
      .Param("clear_output_shapes", &Params::clear_output_shapes,
             "Remove the attribute _output_shapes, which may be stale in old graphs.")
      .Param("exclude_op", &Params::exclude_op, "An op whose nodes are not folded.")
      .Param("exclude_node", &Params::exclude_node, "Name of a node that is not folded.")
      .Param("max_constant_size_in_bytes", &Params::max_constant_size_in_bytes,
             "Maximum size of a result; nodes with larger results are not folded.", AtLeast(0))
      .Numerics(Within(1e-5))
      .Idempotent()
      .NeedsEvaluator()
      .Run(Fold);
}

}  // namespace permafrost

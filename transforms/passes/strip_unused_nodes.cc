// Reduces the graph to the nodes between inputs and outputs, and turns the inputs into placeholders.
#include <algorithm>
#include <map>

#include "graph/analysis/order.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/function_library.h"

namespace permafrost {
namespace {

struct Params {
  std::optional<std::string> type;
  std::optional<std::string> shape;
  std::vector<std::string> name;
  std::vector<std::string> type_for_name;
  std::vector<std::string> shape_for_name;
  bool prune_functions = true;
};

// Type and shape of new placeholders as given by the caller. An absent value is inferred.
struct PlaceholderKind {
  std::optional<DType> type;
  std::optional<Shape> shape;
};

class Wishes {
 public:
  static absl::StatusOr<Wishes> Parse(const Params& params) {
    Wishes wishes;
    if (params.type.has_value()) {
      PF_ASSIGN_OR_RETURN(wishes.any_.type, InParameter("type", ParseDType(*params.type)));
    }
    if (params.shape.has_value()) {
      PF_ASSIGN_OR_RETURN(wishes.any_.shape, InParameter("shape", ParseShape(*params.shape)));
    }
    for (const auto& [key, values] : {std::make_pair("type_for_name", &params.type_for_name),
                                      std::make_pair("shape_for_name", &params.shape_for_name)}) {
      if (values->size() == params.name.size()) continue;
      return absl::InvalidArgumentError(absl::StrCat("parameter '", key, "' is given ", values->size(),
                                                     " times, expected as often as 'name', ", params.name.size()));
    }
    for (size_t i = 0; i < params.name.size(); ++i) {
      PlaceholderKind kind;
      PF_ASSIGN_OR_RETURN(kind.type, InParameter("type_for_name", ParseDType(params.type_for_name[i])));
      PF_ASSIGN_OR_RETURN(kind.shape, InParameter("shape_for_name", ParseShape(params.shape_for_name[i])));
      wishes.by_name_[params.name[i]] = std::move(kind);  // As in TensorFlow, the last one counts.
    }
    return wishes;
  }

  // Notes the names that match no input.
  void NoteUnused(const Graph& graph, PassContext* context) const {
    for (const auto& [name, kind] : by_name_) {
      const Node* node = graph.Find(name.substr(0, name.find(':')));
      if (node == nullptr || !graph.IsInput(node)) {
        context->Note(absl::StrCat("parameter 'name': '", name, "' is not a declared input"));
      } else if (node->op() == ops::kPlaceholder) {
        context->Note(absl::StrCat(node->Describe(), " keeps its type and shape: it is not a new placeholder"));
      }
    }
  }

  // Looks up `name` with its port, or alone.
  const PlaceholderKind& Of(const Node& node, int port) const {
    const std::string name(node.name());
    const auto with_port = by_name_.find(absl::StrCat(name, ":", port));
    if (with_port != by_name_.end()) return with_port->second;
    const auto alone = by_name_.find(name);
    return alone != by_name_.end() ? alone->second : any_;
  }

 private:
  template <typename T>
  static absl::StatusOr<T> InParameter(absl::string_view name, absl::StatusOr<T> value) {
    if (value.ok()) return value;
    return Annotate(value.status(), absl::StrCat("parameter '", name, "'"));
  }

  PlaceholderKind any_;
  std::map<std::string, PlaceholderKind> by_name_;
};

// Returns the type of an output, from its node or from a node that reads it.
std::optional<DType> InferType(const Graph& graph, TensorRef ref) {
  const absl::StatusOr<std::vector<DType>> own = OutputTypes(*ref.node);
  if (own.ok() && static_cast<size_t>(ref.port) < own->size()) return RemoveRef((*own)[ref.port]);
  for (const Use& use : graph.UsesOf(ref)) {
    const absl::StatusOr<std::vector<DType>> types = InputTypes(*use.consumer);
    if (types.ok() && use.index < types->size()) return RemoveRef((*types)[use.index]);
  }
  return std::nullopt;
}

// Cuts the graph at its inputs.
class Cut {
 public:
  Cut(Graph* graph, const Wishes& wishes, PassContext* context) : graph_(graph), wishes_(wishes), context_(context) {
    const bool infers = std::any_of(graph->inputs().begin(), graph->inputs().end(), [&](const Endpoint& input) {
      return IsCut(input) && !wishes.Of(*input.node, input.port).shape.has_value();
    });
    if (!infers) return;
    // Shapes stay unknown if inference fails; the cause may be in a part that is removed.
    if (absl::StatusOr<ShapeMap> shapes = InferShapes(*graph); shapes.ok()) shapes_ = *std::move(shapes);
  }

  // Replaces every second or later output that is an input of the graph by a new placeholder, and declares that as
  // input.
  absl::Status AtPorts() {
    std::vector<std::string> inputs, outputs;
    for (const Endpoint& output : graph_->outputs()) outputs.push_back(output.text);
    std::map<std::string, std::string> new_names;  // The same output may be declared twice.
    for (const Endpoint& input : graph_->inputs()) {
      inputs.push_back(input.text);
      if (input.node == nullptr) continue;
      PF_RETURN_IF_ERROR(CheckPort(input));
      if (input.port == 0) continue;
      std::string& name = new_names[input.text];
      if (name.empty()) {
        const RewriteScope rewrite(context_, graph_, {input.node});
        if (!rewrite) {
          new_names.erase(input.text);
          continue;
        }
        name = graph_->UniqueName(absl::StrCat(input.node->name(), "_", input.port));
        const TensorRef old = {input.node, input.port};
        PF_ASSIGN_OR_RETURN(Node * placeholder, graph_->AddNode(name, ops::kPlaceholder, input.node));
        SetAttrs(KindOf(old), placeholder);
        graph_->ReplaceUses(old, {placeholder, 0});
        context_->Note(absl::StrCat("the input '", input.text, "' is now the placeholder '", name, "'"));
        ++rewrites_;
      }
      inputs.back() = name;
    }
    return new_names.empty() ? absl::OkStatus() : graph_->DeclareInterface(inputs, outputs);
  }

  // Turns each input that is another op into a placeholder of the same name. `needed`, by id, holds the nodes that the
  // outputs need.
  absl::Status AtNodes(const std::vector<bool>& needed) {
    for (const Endpoint& input : graph_->inputs()) {
      if (input.node == nullptr) {
        context_->Note(absl::StrCat("the declared input '", input.text, "' is not in the graph"));
        continue;
      }
      if (!IsCut(input)) {
        if (input.node->num_inputs() == 0 || !Allow(*input.node)) continue;
        ++rewrites_;
        graph_->ClearInputs(input.node);
        continue;
      }
      if (!Allow(*input.node)) continue;
      PF_RETURN_IF_ERROR(CheckOnlyFirstOutputUsed(input.node, needed));
      const PlaceholderKind kind = KindOf({input.node, 0});
      graph_->ClearInputs(input.node);
      input.node->ClearAttrs();
      input.node->set_device("");
      input.node->set_extra_fields("");
      input.node->set_op(ops::kPlaceholder);
      SetAttrs(kind, input.node);
      ++rewrites_;
    }
    return absl::OkStatus();
  }

  int64_t rewrites() const { return rewrites_; }
  // True if an input was left unchanged because the limit of rewrites was reached.
  bool is_partial() const { return is_partial_; }

 private:
  bool Allow(const Node& node) {
    const bool is_allowed = context_->AllowRewrite(node);
    is_partial_ |= !is_allowed;
    return is_allowed;
  }

  static bool IsCut(const Endpoint& input) { return input.node != nullptr && input.node->op() != ops::kPlaceholder; }

  static absl::Status CheckPort(const Endpoint& input) {
    const absl::StatusOr<int> outputs = NumOutputs(*input.node);
    if (!outputs.ok() || input.port < *outputs) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.text, "': ", input.node->Describe(), " has ", *outputs, " outputs"));
  }

  // A placeholder has one output.
  absl::Status CheckOnlyFirstOutputUsed(const Node* node, const std::vector<bool>& needed) const {
    const auto error = [&](int port, absl::string_view user) {
      return absl::FailedPreconditionError(absl::StrCat(node->Describe(), " is an input and its output ", port,
                                                        " is used by ", user, "; declare '", node->name(), ":", port,
                                                        "' as an input too"));
    };
    for (const Endpoint& output : graph_->outputs()) {
      if (output.node == node && output.port > 0) return error(output.port, "the caller as a declared output");
    }
    for (const Use& use : node->uses()) {
      const int port = use.consumer->input(use.index).port;
      const bool stays = needed[use.consumer->id()] && !graph_->IsInput(use.consumer);
      if (port > 0 && stays) return error(port, use.consumer->Describe());
    }
    return absl::OkStatus();
  }

  PlaceholderKind KindOf(TensorRef ref) const {
    PlaceholderKind kind = wishes_.Of(*ref.node, ref.port);
    if (!kind.type.has_value()) kind.type = InferType(*graph_, ref);
    if (!kind.type.has_value()) {
      kind.type = DType::kFloat;
      context_->Note(absl::StrCat("float is assumed for the new placeholder in place of ", ref.node->Describe(),
                                  ", whose op is not in the op table; give type_for_name if it is another type"));
    }
    if (!kind.shape.has_value()) kind.shape = InferShape(ref);
    return kind;
  }

  Shape InferShape(TensorRef ref) const {
    Shape shape = shapes_.Of(ref);
    const AttrValue* recorded = ref.node->FindAttr("_output_shapes");
    if (shape.has_rank() || recorded == nullptr) return shape;
    const absl::StatusOr<std::vector<Shape>> shapes = recorded->AsShapeList();
    return shapes.ok() && static_cast<size_t>(ref.port) < shapes->size() ? (*shapes)[ref.port] : shape;
  }

  static void SetAttrs(const PlaceholderKind& kind, Node* placeholder) {
    placeholder->SetAttr("dtype", AttrValue::Type(*kind.type));
    placeholder->SetAttr("shape", AttrValue::OfShape(*kind.shape));
  }

  Graph* graph_;
  const Wishes& wishes_;
  PassContext* context_;
  ShapeMap shapes_;
  int64_t rewrites_ = 0;
  bool is_partial_ = false;
};

// Returns by node id the nodes between the declared inputs and the declared outputs, and the inputs themselves. Without
// stop_at_inputs, includes the nodes that the inputs need. Constant initialisers of variables in between are included.
std::vector<bool> Needed(const Graph& graph, bool stop_at_inputs = true) {
  std::vector<Node*> roots;
  std::vector<bool> stop(graph.id_limit(), false);
  for (const Endpoint& output : graph.outputs()) roots.push_back(output.node);
  for (const Endpoint& input : graph.inputs()) {
    if (input.node == nullptr) continue;
    roots.push_back(input.node);
    stop[input.node->id()] = stop_at_inputs;
  }
  std::vector<bool> needed = ReachedBackwards(graph, roots, stop);
  KeepConstantInitializers(graph, &needed);
  return needed;
}

// Requests permission to remove each node that is not needed. Adds to `needed` the nodes that must be kept, with their
// inputs. Consumers are visited before producers if the file is in topological order. A pass that is stopped has then
// removed only nodes without readers.
void KeepUnlessAllowed(const Graph& graph, PassContext* context, std::vector<bool>* needed) {
  std::vector<Node*> unneeded, staying;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!(*needed)[node->id()]) unneeded.push_back(node);
  }
  for (auto node = unneeded.rbegin(); node != unneeded.rend(); ++node) {
    if (!context->AllowRewrite(**node)) staying.push_back(*node);
  }
  if (staying.empty()) return;
  const std::vector<bool> kept = ReachedBackwards(graph, staying, std::vector<bool>(graph.id_limit(), false));
  for (size_t id = 0; id < kept.size(); ++id) {
    if (kept[id]) (*needed)[id] = true;
  }
}

absl::StatusOr<int64_t> Strip(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const Wishes wishes, Wishes::Parse(params));
  if (graph->inputs().empty() && graph->outputs().empty()) {
    return absl::FailedPreconditionError("no inputs and no outputs are declared, so nothing would be left");
  }
  wishes.NoteUnused(*graph, context);
  Cut cut(graph, wishes, context);
  PF_RETURN_IF_ERROR(cut.AtPorts());
  std::vector<bool> needed = Needed(*graph);
  PF_RETURN_IF_ERROR(cut.AtNodes(needed));
  if (cut.is_partial()) needed = Needed(*graph, /*stop_at_inputs=*/false);
  KeepUnlessAllowed(*graph, context, &needed);

  std::vector<bool> remove(graph->id_limit(), false);
  const size_t nodes_before = graph->num_nodes();
  for (Node* node = graph->first(); node != nullptr; node = node->next()) remove[node->id()] = !needed[node->id()];
  PF_RETURN_IF_ERROR(graph->RemoveNodes(remove));
  int64_t rewrites = cut.rewrites() + static_cast<int64_t>(nodes_before - graph->num_nodes());
  if (rewrites > 0 || context->rewrite_limit > 0) rewrites += DropDanglingColocations(graph);
  if (params.prune_functions && !graph->library().empty() && context->AllowRewrite(absl::Span<const Node* const>())) {
    const absl::StatusOr<bool> pruned = PruneFunctions(graph);
    if (!pruned.ok()) {
      context->Note(absl::StrCat("the function library is kept: ", pruned.status().message()));
    } else if (*pruned) {
      context->Note(absl::StrCat(
          "dropped ", graph->library().empty() ? "the function library, which" : "functions that", " no node calls"));
      ++rewrites;
    }
  }
  return rewrites;
}

}  // namespace

// Keeps the nodes that the declared outputs need, by data and control edges, back to the declared inputs. A declared
// input that is not a Placeholder becomes one, and the nodes that computed it are removed. Its type and shape are the
// given ones, or otherwise those of the replaced node. An input declared as `name:1` becomes a Placeholder named
// `name_1`, which replaces it as a declared input.
//
//   Decode(file) -> x -> y -> z   with --inputs=x --outputs=y   =>   Placeholder x -> y
//
// Leaves unchanged declared inputs, even if no node reads them, and the type and shape of existing Placeholders. It is
// an error if a later output of a replaced node is read and not declared as an input.
DEFINE_PASS(strip_unused_nodes) {
  return Pass<Params>(
             "Removes nodes that the declared outputs do not need, and turns the declared inputs into placeholders.")
      .Why(
          "A training graph contains nodes that inference does not need; an application needs only the path from its "
          "inputs to its outputs.")
      .Param("type", &Params::type, "Type of new placeholders. Default: the type of the replaced node.")
      .Param("shape", &Params::shape,
             "Shape of new placeholders, such as \"1,224,224,3\"; ? or -1: unknown dimension, []: scalar, unknown: "
             "unknown rank. Default: the shape of the replaced node.")
      .Param("name", &Params::name,
             "An input with its own type and shape; give type_for_name and shape_for_name equally often.")
      .Param("type_for_name", &Params::type_for_name, "Type of the input at the same position in `name`.")
      .Param("shape_for_name", &Params::shape_for_name, "Shape of the input at the same position in `name`.")
      .Param("prune_functions", &Params::prune_functions, "Remove functions that certainly no node calls.")
      .Numerics(Exact())
      .Idempotent()
      .ChangesInterface("an input declared as `name:port`, with a port other than 0, becomes a node `name_port`")
      .Run(Strip);
}

}  // namespace permafrost

// Implements the expansion, the inference of shapes and the storing of bodies of functions.
#include "transforms/rewrites/function_tree.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/functions/function_definition.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/inferred_shapes.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/rewrites/function_library.h"

namespace permafrost {
namespace {

// Maximum depth of nested branches and loops. Those of real models nest about 5 deep; deeper ones are recursive.
constexpr int kMostDepth = 32;
// Maximum number of nodes in all bodies: a small file can nest calls that expand without limit.
constexpr int64_t kMostNodes = 10'000'000;
// Maximum number of times that the shapes of one body are inferred, each time with more known results of calls.
constexpr int kMostRounds = 16;
// Maximum number of iterations until loop variables have shapes that do not change. Each makes a dimension unknown.
constexpr int kMostIterations = 16;

bool IsCall(const Node& node) {
  return node.op() == ops::kIf || node.op() == ops::kStatelessIf || node.op() == ops::kWhile ||
         node.op() == ops::kStatelessWhile || node.op() == ops::kCase || node.op() == ops::kStatelessCase;
}
bool IsCase(const Node& node) { return node.op() == ops::kCase || node.op() == ops::kStatelessCase; }

// The attributes with the functions of a branch or loop, in the order of Call::bodies.
std::vector<absl::string_view> KeysOf(const Node& node) {
  if (IsCase(node)) return {"branches"};
  if (node.op() == ops::kWhile || node.op() == ops::kStatelessWhile) return {"cond", "body"};
  return {"else_branch", "then_branch"};
}

absl::StatusOr<std::vector<FunctionRef>> FunctionsOf(const Node& node) {
  std::vector<FunctionRef> functions;
  for (const absl::string_view key : KeysOf(node)) {
    const AttrValue* attr = node.FindAttr(key);
    if (attr == nullptr) return absl::NotFoundError(absl::StrCat("attr '", key, "' is missing"));
    if (IsCase(node)) return attr->AsFunctionList();
    PF_ASSIGN_OR_RETURN(functions.emplace_back(), attr->AsFunction());
  }
  return functions;
}

Shape Join(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape::UnknownRank();
  Shape joined = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) joined.set_dim(i, kUnknownDim);
  }
  return joined;
}

std::vector<DType> TypesOf(const std::vector<Node*>& nodes) {
  std::vector<DType> types;
  for (const Node* node : nodes) types.push_back(TypeAttr(*node, "T").value_or(DType::kInvalid));
  return types;
}

void SetShapes(Node* node, absl::Span<const Shape> shapes) {
  node->SetAttr(kInferredShapesAttr, AttrValue::ShapeList(shapes));
}

// Removes _Arg i, and _Retval i if `and_result`, from a body.
absl::Status RemoveFromBody(Graph* body, int i, bool and_result) {
  std::vector<Node*> removed;
  std::vector<std::string> inputs, outputs;
  int index = 0;
  for (Node* arg : ArgsOf(*body)) {
    if (index++ == i) {
      removed.push_back(arg);
      continue;
    }
    arg->SetAttr("index", AttrValue::Int(static_cast<int64_t>(inputs.size())));
    inputs.emplace_back(arg->name());
  }
  index = 0;
  for (const Endpoint& output : body->outputs()) {
    if (output.node->op() != ops::k_Retval) {
      outputs.push_back(output.text);
    } else if (index++ == i && and_result) {
      removed.push_back(output.node);
    } else {
      output.node->SetAttr("index", AttrValue::Int(static_cast<int64_t>(outputs.size())));
      outputs.push_back(output.text);
    }
  }
  PF_RETURN_IF_ERROR(body->DeclareInterface(inputs, outputs));
  // The result first: it may be the last reader, possibly through Identity nodes.
  for (size_t k = removed.size(); k-- > 0;) {
    Node* node = removed[k];
    while (node != nullptr) {
      Node* below = node->num_data_inputs() == 1 ? node->input(0).node : nullptr;
      PF_RETURN_IF_ERROR(body->RemoveNode(node));
      const bool is_identity = below != nullptr && below->op() == ops::kIdentity && below->uses().empty();
      node = is_identity && !body->IsEndpoint(below) ? below : nullptr;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FunctionTree> FunctionTree::Expand(Graph* graph, PassContext* context) {
  FunctionTree tree;
  tree.context_ = context;
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  tree.functions_ = std::make_unique<FunctionLibrary>(std::move(library));
  tree.inlining_ = std::make_unique<CallInlining>(*tree.functions_, InliningOptions(), context);
  tree.root_ = std::make_unique<Body>();
  tree.root_->graph = graph;
  PF_RETURN_IF_ERROR(tree.ExpandIn(tree.root_.get(), 0, tree.inlining_.get()));
  return tree;
}

absl::StatusOr<std::unique_ptr<FunctionTree::Body>> FunctionTree::MakeBody(const Node& node,
                                                                           const FunctionRef& function,
                                                                           CallInlining* inlining,
                                                                           std::string* obstacle) {
  const absl::StatusOr<const CallInlining::Body*> flat = inlining->BodyOf(node, function);
  if (absl::IsResourceExhausted(flat.status())) return flat.status();
  if (!flat.ok() || (*flat)->graph == nullptr) {
    *obstacle = flat.ok() ? (*flat)->obstacle : std::string(flat.status().message());
    return nullptr;
  }
  auto body = std::make_unique<Body>();
  body->owned = (*flat)->graph->Clone();
  body->graph = body->owned.get();
  body->function = function.name;
  num_nodes_ += static_cast<int64_t>(body->graph->num_nodes());
  if (num_nodes_ > kMostNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the bodies of branches and loops have more than ", kMostNodes, " nodes"));
  }
  return body;
}

absl::Status FunctionTree::ExpandIn(Body* body, int depth, CallInlining* inlining) {
  for (Node* node = body->graph->first(); node != nullptr; node = node->next()) {
    if (!IsCall(*node) || body->graph->IsInput(node)) continue;
    if (depth >= kMostDepth) {
      context_->MissIfWanted(*node, "is nested more than ", kMostDepth, " deep in functions");
      continue;
    }
    const absl::StatusOr<std::vector<FunctionRef>> functions = FunctionsOf(*node);
    Call call;
    call.node = node;
    std::string obstacle(functions.status().message());
    for (size_t i = 0; functions.ok() && i < functions->size() && obstacle.empty(); ++i) {
      PF_ASSIGN_OR_RETURN(std::unique_ptr<Body> made, MakeBody(*node, (*functions)[i], inlining, &obstacle));
      if (made == nullptr) break;
      const size_t num_args = ArgsOf(*made->graph).size(), num_results = RetvalsOf(*made->graph).size();
      const size_t expected = static_cast<size_t>(std::max(0, call.num_args()));
      const bool is_condition = call.is_loop() && i == 0;
      const absl::StatusOr<int> outputs = NumOutputs(*node);
      const size_t expected_results = is_condition ? 1 : outputs.ok() ? static_cast<size_t>(*outputs) : 0;
      // A loop returns what it takes.
      const bool is_uneven = call.is_loop() && (!outputs.ok() || static_cast<size_t>(*outputs) != expected);
      if (is_uneven || num_args != expected || num_results != expected_results) {
        obstacle = absl::StrCat("calls function '", (*functions)[i].name, "' with ", num_args, " arguments and ",
                                num_results, " results, expected ", expected, " and ", expected_results);
        break;
      }
      call.bodies.push_back(std::move(made));
    }
    if (!obstacle.empty() || call.bodies.empty()) {
      context_->MissIfWanted(*node, obstacle.empty() ? "calls no function" : obstacle);
      continue;
    }
    for (const std::unique_ptr<Body>& each : call.bodies) PF_RETURN_IF_ERROR(ExpandIn(each.get(), depth + 1, inlining));
    body->calls.push_back(std::move(call));
  }
  return absl::OkStatus();
}

absl::Status FunctionTree::ExpandAgain(Body* body) {
  body->calls.clear();
  if (body->owned == nullptr || body->graph->library().empty()) return ExpandIn(body, 0, inlining_.get());
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*body->graph));
  body->library = std::make_unique<FunctionLibrary>(std::move(library));
  body->inlining = std::make_unique<CallInlining>(*body->library, InliningOptions(), context_);
  return ExpandIn(body, 0, body->inlining.get());
}

std::vector<FunctionTree::Body*> FunctionTree::Bodies() {
  std::vector<Body*> bodies = {root_.get()};
  for (size_t i = 0; i < bodies.size(); ++i) {
    for (const Call& call : bodies[i]->calls) {
      for (const std::unique_ptr<Body>& body : call.bodies) bodies.push_back(body.get());
    }
  }
  return bodies;
}

// --- Shapes ----------------------------------------------------------------------------------------------------------

absl::Status FunctionTree::InferShapes() {
  for (Body* body : Bodies()) {
    for (Call& call : body->calls) {
      call.is_inferred = false;
      call.node->RemoveAttr(kInferredShapesAttr);
    }
  }
  return InferIn(root_.get(), {}).status();
}

absl::StatusOr<std::vector<Shape>> FunctionTree::InferIn(Body* body, absl::Span<const Shape> args) {
  Graph& graph = *body->graph;
  const std::vector<Node*> arg_nodes = body->owned == nullptr ? std::vector<Node*>() : ArgsOf(graph);
  for (size_t i = 0; i < arg_nodes.size() && i < args.size(); ++i) SetShapes(arg_nodes[i], {args[i]});
  for (int round = 0; round < kMostRounds; ++round) {
    const absl::StatusOr<ShapeMap> shapes = permafrost::InferShapes(graph);
    if (!shapes.ok()) break;
    bool is_changed = false;
    for (Call& call : body->calls) {
      std::vector<Shape> inputs;
      for (int i = 0; i < call.num_args(); ++i) inputs.push_back(shapes->Of(call.node->input(call.first_arg() + i)));
      if (call.is_inferred && inputs == call.inputs) continue;
      PF_ASSIGN_OR_RETURN(std::vector<Shape> outputs, InferCall(&call, inputs));
      is_changed |= !call.is_inferred || outputs != call.outputs;
      call.inputs = std::move(inputs);
      call.outputs = std::move(outputs);
      call.is_inferred = true;
      SetShapes(call.node, call.outputs);
    }
    if (is_changed) continue;
    std::vector<Shape> results;
    if (body->owned == nullptr) return results;
    for (const Node* result : RetvalsOf(graph)) results.push_back(shapes->Of(result->input(0)));
    return results;
  }
  if (body->owned == nullptr) return std::vector<Shape>();
  return std::vector<Shape>(RetvalsOf(graph).size(), Shape::UnknownRank());
}

absl::StatusOr<std::vector<Shape>> FunctionTree::InferCall(Call* call, absl::Span<const Shape> args) {
  if (!call->is_loop()) {
    std::vector<Shape> joined;
    for (size_t i = 0; i < call->bodies.size(); ++i) {
      PF_ASSIGN_OR_RETURN(std::vector<Shape> results, InferIn(call->bodies[i].get(), args));
      if (i == 0) {
        joined = std::move(results);
        continue;
      }
      for (size_t k = 0; k < joined.size(); ++k) joined[k] = Join(joined[k], results[k]);
    }
    return joined;
  }
  std::vector<Shape> current(args.begin(), args.end());
  for (int iteration = 0;; ++iteration) {
    PF_ASSIGN_OR_RETURN(const std::vector<Shape> results, InferIn(call->bodies[1].get(), current));
    std::vector<Shape> next;
    for (size_t k = 0; k < current.size(); ++k) {
      next.push_back(iteration < kMostIterations ? Join(current[k], results[k]) : Shape::UnknownRank());
    }
    const bool is_stable = next == current || iteration > kMostIterations;
    current = std::move(next);
    if (is_stable) break;
  }
  PF_RETURN_IF_ERROR(InferIn(call->bodies[0].get(), current).status());
  return current;
}

// --- Editing ---------------------------------------------------------------------------------------------------------

void FunctionTree::SetTypes(Call* call) {
  const std::vector<DType> args = TypesOf(ArgsOf(*call->bodies[0]->graph));
  call->node->RemoveAttr("output_shapes");
  call->node->RemoveAttr("_output_shapes");
  if (call->is_loop()) {
    call->node->SetAttr("T", AttrValue::TypeList(args));
    return;
  }
  call->node->SetAttr("Tin", AttrValue::TypeList(args));
  call->node->SetAttr("Tout", AttrValue::TypeList(TypesOf(RetvalsOf(*call->bodies[0]->graph))));
}

absl::Status FunctionTree::RemoveArg(Body* caller, Call* call, int i) {
  Graph& graph = *caller->graph;
  Node* node = call->node;
  const int index = call->first_arg() + i;
  if (call->is_loop()) {
    PF_RETURN_IF_ERROR(RemoveFromBody(call->bodies[0]->graph, i, false));
    PF_RETURN_IF_ERROR(RemoveFromBody(call->bodies[1]->graph, i, true));
    graph.ReplaceUses({node, i}, node->input(index));
    // Moves the ports of later outputs down.
    const std::vector<Use> uses(node->uses().begin(), node->uses().end());
    for (const Use& use : uses) {
      TensorRef ref = use.consumer->input(static_cast<int>(use.index));
      if (ref.port <= i) continue;
      --ref.port;
      graph.SetInput(use.consumer, static_cast<int>(use.index), ref);
    }
  } else {
    for (const std::unique_ptr<Body>& body : call->bodies) PF_RETURN_IF_ERROR(RemoveFromBody(body->graph, i, false));
  }
  graph.RemoveInput(node, index);
  call->is_inferred = false;
  node->RemoveAttr(kInferredShapesAttr);
  SetTypes(call);
  return absl::OkStatus();
}

absl::Status FunctionTree::Store() {
  const std::vector<Body*> bodies = Bodies();
  // Functions that other nodes name stay.
  absl::flat_hash_set<std::string> named;
  for (Body* body : bodies) {
    absl::flat_hash_set<const Node*> calls;
    for (const Call& call : body->calls) calls.insert(call.node);
    // The functions of calls are replaced below.
    for (const Call& call : body->calls) {
      for (const absl::string_view key : KeysOf(*call.node)) call.node->RemoveAttr(key);
    }
    for (std::string& name : functions_->CalledBy(*body->graph)) named.insert(std::move(name));
  }
  FunctionLibrary kept;
  PF_ASSIGN_OR_RETURN(kept, FunctionLibrary::Of(*root_->graph));
  PF_ASSIGN_OR_RETURN(const auto reachable,
                      functions_->Reachable(std::vector<std::string>(named.begin(), named.end())));
  kept.Retain(reachable);

  absl::flat_hash_set<std::string> taken;
  for (const Function* function : kept.functions()) taken.emplace(function->name());
  absl::flat_hash_map<const Body*, std::string> names;
  std::string definitions;
  for (Body* body : bodies) {
    if (body->owned == nullptr) continue;
    std::string name = body->function;
    for (int k = 1; !taken.insert(name).second; ++k) name = absl::StrCat(body->function, "_", k);
    names[body] = name;
    // No other node may have the name of an argument in the definition.
    const std::vector<Node*> args = ArgsOf(*body->graph);
    for (size_t i = 0; i < args.size(); ++i) {
      const std::string arg = absl::StrCat("arg", i);
      Node* other = body->graph->Find(arg);
      if (other != nullptr && other != args[i]) {
        PF_RETURN_IF_ERROR(body->graph->Rename(other, body->graph->UniqueName(absl::StrCat(arg, "_node"))));
      }
    }
    definitions += EmptyFunction(name, *body->graph);
  }
  for (Body* body : bodies) {
    for (Call& call : body->calls) {
      std::vector<FunctionRef> functions;
      for (const std::unique_ptr<Body>& each : call.bodies) functions.push_back({names.at(each.get()), {}});
      const std::vector<absl::string_view> keys = KeysOf(*call.node);
      if (IsCase(*call.node)) call.node->SetAttr(keys[0], AttrValue::FunctionList(functions));
      for (size_t i = 0; !IsCase(*call.node) && i < keys.size(); ++i) {
        call.node->SetAttr(keys[i], AttrValue::Function(functions[i]));
      }
    }
  }
  // The library is field 2 of the GraphDef; its message is that of the kept functions followed by the new ones.
  std::string content, library;
  const std::string encoded = kept.Encode();
  WireReader reader(encoded);
  WireField field;
  while (reader.Next(&field)) absl::StrAppend(&content, field.bytes);
  PF_RETURN_IF_ERROR(reader.status());
  content += definitions;
  AppendBytesField(2, content, &library);
  root_->graph->set_library(library);
  PF_ASSIGN_OR_RETURN(FunctionLibrary filled, FunctionLibrary::Of(*root_->graph));
  for (Body* body : bodies) {
    if (body->owned != nullptr) PF_RETURN_IF_ERROR(filled.SetBody(names.at(body), *body->graph));
  }
  filled.Store(root_->graph);
  return absl::OkStatus();
}

}  // namespace permafrost

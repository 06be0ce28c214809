// Implements the pipeline over bodies of functions.
#include "transforms/pipeline/body_pipeline.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/shapes/inferred_shapes.h"
#include "transforms/rewrites/function_tree.h"

namespace permafrost {
namespace {

// Turns the arguments of a body into inputs, which all passes know, or inputs into arguments.
absl::Status ArgsToInputs(Graph* body) {
  for (Node* arg : ArgsOf(*body)) {
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*arg, "T"));
    Shape shape = Shape::UnknownRank();
    if (const AttrValue* inferred = arg->FindAttr(kInferredShapesAttr); inferred != nullptr) {
      PF_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, inferred->AsShapeList());
      if (!shapes.empty()) shape = shapes[0];
    }
    arg->set_op(ops::kPlaceholder);
    arg->ClearAttrs();
    arg->SetAttr("dtype", AttrValue::Type(dtype));
    arg->SetAttr("shape", AttrValue::OfShape(shape));
  }
  return absl::OkStatus();
}

absl::Status InputsToArgs(Graph* body) {
  int64_t index = 0;
  for (const Endpoint& input : body->inputs()) {
    if (input.node == nullptr) return absl::InternalError(absl::StrCat("argument '", input.text, "' was removed"));
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*input.node, "dtype"));
    input.node->set_op(ops::k_Arg);
    input.node->ClearAttrs();
    input.node->SetAttr("T", AttrValue::Type(dtype));
    input.node->SetAttr("index", AttrValue::Int(index++));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPipelineOnBodies(std::unique_ptr<Graph>* graph, absl::Span<const PassCall> calls,
                                 PassContext* context) {
  if ((*graph)->library().empty()) return RunPipeline(graph, calls, context).status();
  {
    // Gives the calls in the graph the shapes of their results.
    PF_ASSIGN_OR_RETURN(FunctionTree tree, FunctionTree::Expand(graph->get(), context));
    PF_RETURN_IF_ERROR(tree.InferShapes());
  }
  PF_RETURN_IF_ERROR(RunPipeline(graph, calls, context).status());
  PF_ASSIGN_OR_RETURN(FunctionTree tree, FunctionTree::Expand(graph->get(), context));
  if (!tree.has_calls()) return absl::OkStatus();
  PF_RETURN_IF_ERROR(tree.InferShapes());
  const std::string library((*graph)->library());
  std::vector<FunctionTree::Body*> waiting = {&tree.root()};
  while (!waiting.empty()) {
    FunctionTree::Body* caller = waiting.back();
    waiting.pop_back();
    for (FunctionTree::Call& call : caller->calls) {
      for (const std::unique_ptr<FunctionTree::Body>& body : call.bodies) {
        // Passes look up the functions that nested calls name.
        body->owned->set_library(library);
        const std::string place = absl::StrCat("function '", body->function, "'");
        PF_RETURN_IF_ERROR(Annotate(ArgsToInputs(body->graph), place));
        PF_RETURN_IF_ERROR(Annotate(RunPipeline(&body->owned, calls, context).status(), place));
        PF_RETURN_IF_ERROR(Annotate(InputsToArgs(body->owned.get()), place));
        body->graph = body->owned.get();
        PF_RETURN_IF_ERROR(tree.ExpandAgain(body.get()));
        body->graph->set_library("");
        waiting.push_back(body.get());
      }
    }
    PF_RETURN_IF_ERROR(tree.InferShapes());
  }
  return tree.Store();
}

}  // namespace permafrost

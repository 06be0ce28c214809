// Moves constants that branches and loops take as arguments into their bodies.
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"
#include "transforms/rewrites/function_tree.h"

namespace permafrost {
namespace {

TensorRef BehindIdentity(TensorRef ref) {
  while (ref.port == 0 && ref.node->op() == ops::kIdentity && ref.node->num_data_inputs() == 1)
    ref = ref.node->input(0);
  return ref;
}

// Returns the constant, variable or table that a tensor is, or null.
Node* SourceOf(const Graph& graph, TensorRef ref) {
  const TensorRef source = BehindIdentity(ref);
  const Op op = source.node->op();
  const bool is_source = op == ops::kConst || op == ops::kVarHandleOp || IsTable(op);
  return is_source && source.port == 0 && !graph.IsInput(source.node) ? source.node : nullptr;
}

// True if every iteration of the loop returns argument i as it is.
bool IsInvariant(const FunctionTree::Call& call, int i) {
  const Graph& body = *call.bodies[1]->graph;
  const std::vector<Node*> args = ArgsOf(body), results = RetvalsOf(body);
  const size_t index = static_cast<size_t>(i);
  return BehindIdentity(results[index]->input(0)) == TensorRef{args[index], 0};
}

// True if only the result of the same number reads the argument, through Identity nodes.
bool IsOnlyReturned(const Graph& body, int i, bool may_return) {
  const Node* node = ArgsOf(body)[static_cast<size_t>(i)];
  while (node->uses().size() == 1) {
    const Node* reader = node->uses()[0].consumer;
    if (reader->op() == ops::k_Retval) return may_return && RetvalsOf(body)[static_cast<size_t>(i)] == reader;
    if (reader->op() != ops::kIdentity || reader->num_inputs() != 1 || body.IsEndpoint(reader)) return false;
    node = reader;
  }
  return node->uses().empty();
}

absl::StatusOr<Node*> Copy(Graph* graph, Node* source) {
  const std::string name = graph->UniqueName(source->name());
  if (source->op() == ops::kConst) {
    PF_ASSIGN_OR_RETURN(Tensor value, ConstValue(*source));
    return graph->AddConst(name, std::move(value), graph->first());
  }
  // The name identifies the resource in all functions.
  if (StringAttr(*source, "shared_name").value_or("").empty()) {
    source->SetAttr("shared_name", AttrValue::String(source->name()));
  }
  PF_ASSIGN_OR_RETURN(Node * node, graph->AddNode(name, source->op(), graph->first()));
  node->CopyAttrs(*source);
  return node;
}

// Redirects the readers of argument i of a body to a copy of `source`, except for the result of the same number.
absl::Status Replace(Graph* body, int i, bool is_returned, Node* source) {
  const size_t index = static_cast<size_t>(i);
  Node* arg = ArgsOf(*body)[index];
  if (IsOnlyReturned(*body, i, is_returned)) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(Node * copy, Copy(body, source));
  body->ReplaceUses({arg, 0}, {copy, 0});
  body->ReplaceControlUses(arg, copy);
  if (is_returned) body->SetInput(RetvalsOf(*body)[index], 0, {arg, 0});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Sink(Graph* graph, const NoParams&, PassContext* context) {
  PF_ASSIGN_OR_RETURN(FunctionTree tree, FunctionTree::Expand(graph, context));
  if (!tree.has_calls()) return 0;
  int64_t num_sunk = 0, num_unread = 0;
  for (FunctionTree::Body* caller : tree.Bodies()) {
    for (FunctionTree::Call& call : caller->calls) {
      if (caller->graph->IsEndpoint(call.node)) {
        context->MissIfWanted(*call.node, "is a declared input or output, whose ports must stay");
        continue;
      }
      for (int i = call.num_args(); i-- > 0;) {
        const bool is_loop = call.is_loop();
        if (is_loop && !IsInvariant(call, i)) continue;
        bool is_unread = true;
        for (size_t k = 0; k < call.bodies.size(); ++k) {
          is_unread &= IsOnlyReturned(*call.bodies[k]->graph, i, is_loop && k == 1);
        }
        Node* source = SourceOf(*caller->graph, call.node->input(call.first_arg() + i));
        if (!is_unread && source == nullptr) continue;
        const RewriteScope rewrite(context, caller->graph, {call.node});
        if (!rewrite) continue;
        for (size_t k = 0; k < call.bodies.size() && !is_unread; ++k) {
          PF_RETURN_IF_ERROR(Replace(call.bodies[k]->graph, i, is_loop && k == 1, source));
        }
        PF_RETURN_IF_ERROR(tree.RemoveArg(caller, &call, i));
        ++(is_unread ? num_unread : num_sunk);
      }
    }
  }
  if (num_sunk + num_unread == 0) return 0;
  PF_RETURN_IF_ERROR(tree.InferShapes());
  PF_RETURN_IF_ERROR(tree.Store());
  context->Note(absl::StrCat("moved ", num_sunk, " arguments into functions, removed ", num_unread, " unused ones"));
  return num_sunk + num_unread;
}

}  // namespace

// Moves constants, variables and tables that a branch or loop takes as arguments into its functions, and removes
// arguments that no function reads.
//
//   While(i, a, w), body(i, a, w) = (i + 1, MatMul(a, w), w)   =>   While(i, a), body(i, a) = (i + 1, MatMul(a, w))
//
// Each call gets functions of its own, in which calls of other functions are inlined. Passes then see the constant
// where it is used, and a runtime need not pass it from iteration to iteration.
//
// Leaves unchanged loop variables that the body changes, and calls that are declared outputs.
DEFINE_PASS(sink_constants) {
  return Pass<NoParams>("Moves constant arguments of branches and loops into their functions.")
      .Why("Exported loops take the weights of their layers as arguments, which hides that they are constant.")
      .Numerics(Exact())
      .Idempotent()
      .LooksFor({ops::kIf, ops::kStatelessIf, ops::kWhile, ops::kStatelessWhile, ops::kCase, ops::kStatelessCase})
      .Run(Sink);
}

}  // namespace permafrost

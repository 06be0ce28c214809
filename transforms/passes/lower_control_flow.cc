// Lowers If, Case and While to V1 control flow, which all runtimes support.
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "transforms/pass.h"
#include "transforms/rewrites/call_inlining.h"
#include "transforms/rewrites/control_flow.h"
#include "transforms/rewrites/function_evaluation.h"

namespace permafrost {
namespace {

struct Params {
  bool prune_functions = false;
  int64_t max_nodes = 10'000'000;
};

bool IsIf(const Node& node) { return node.op() == ops::kStatelessIf || node.op() == ops::kIf; }
bool IsCase(const Node& node) { return node.op() == ops::kStatelessCase || node.op() == ops::kCase; }
bool IsWhile(const Node& node) { return node.op() == ops::kStatelessWhile || node.op() == ops::kWhile; }

class Lowering {
 public:
  Lowering(Graph* graph, const FunctionLibrary& library, const Params& params, PassContext* context)
      : graph_(graph), library_(library), context_(context), inlining_(library, {true, params.max_nodes}, context) {}

  absl::Status Run() {
    in_frame_ = HasControlFlow(*graph_);
    std::deque<Node*> waiting;
    const auto add = [&](const std::vector<Node*>& nodes) {
      for (Node* node : nodes) {
        if (IsIf(*node) || IsCase(*node) || IsWhile(*node)) waiting.push_back(node);
      }
    };
    add(graph_->Nodes());
    while (!waiting.empty()) {
      Node* node = waiting.front();
      waiting.pop_front();
      if (graph_->IsInput(node)) {
        context_->Miss(*node, NotMatched(NearMiss::Kind::kEndpoint, {node, 0}, "is a declared input"));
        continue;
      }
      PF_ASSIGN_OR_RETURN(const std::vector<Node*> made, Lower(node));
      add(made);
    }
    return absl::OkStatus();
  }

  int64_t lowered() const { return lowered_; }
  int64_t decided() const { return decided_; }

 private:
  using Bodies = std::vector<const CallInlining::Body*>;

  // Returns the copied body nodes; none if the node is left unchanged.
  absl::StatusOr<std::vector<Node*>> Lower(Node* node) {
    PF_ASSIGN_OR_RETURN(const std::vector<FunctionRef> functions, FunctionsOf(*node));
    Bodies bodies;
    for (const FunctionRef& function : functions) {
      PF_ASSIGN_OR_RETURN(const bool ends, Ends(*node, function.name));
      if (!ends) return std::vector<Node*>();
      PF_ASSIGN_OR_RETURN(const CallInlining::Body* body, inlining_.BodyOf(*node, function));
      if (body->graph == nullptr) {
        context_->MissIfWanted(*node, body->obstacle);
        return std::vector<Node*>();
      }
      bodies.push_back(body);
    }
    if (IsWhile(*node)) return LowerWhile(node, bodies);
    return LowerChoice(node, bodies);
  }

  // Returns the functions in order of index: a condition of 0 or false selects the first.
  static absl::StatusOr<std::vector<FunctionRef>> FunctionsOf(const Node& node) {
    const std::vector<absl::string_view> keys = IsIf(node)
                                                    ? std::vector<absl::string_view>{"else_branch", "then_branch"}
                                                : IsWhile(node) ? std::vector<absl::string_view>{"cond", "body"}
                                                                : std::vector<absl::string_view>{"branches"};
    std::vector<FunctionRef> functions;
    for (const absl::string_view key : keys) {
      const AttrValue* attr = node.FindAttr(key);
      if (attr == nullptr) return absl::NotFoundError(absl::StrCat(node.Describe(), ": attr '", key, "' is missing"));
      const auto fail = [&](const absl::Status& status) {
        return Annotate(status, absl::StrCat(node.Describe(), ": attr '", key, "'"));
      };
      if (IsCase(node)) {
        auto list = attr->AsFunctionList();
        if (!list.ok()) return fail(list.status());
        if (list->empty()) return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": has no branches"));
        return list;
      }
      auto function = attr->AsFunction();
      if (!function.ok()) return fail(function.status());
      functions.push_back(*std::move(function));
    }
    return functions;
  }

  // Returns false, with a miss, for functions that are recursive through branches or loops. Such recursion may end at
  // run time, but its expansion does not.
  absl::StatusOr<bool> Ends(const Node& node, const std::string& function) {
    const auto [entry, is_new] = obstacles_.try_emplace(function);
    if (is_new) {
      const absl::Status order = library_.CallOrder({function}).status();
      if (!order.ok() && !absl::IsInvalidArgument(order)) return order;
      entry->second = std::string(order.message());
    }
    if (entry->second.empty()) return true;
    context_->MissIfWanted(node, entry->second);
    return false;
  }

  absl::StatusOr<std::vector<Node*>> LowerChoice(Node* node, const Bodies& bodies) {
    if (node->num_data_inputs() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": has no input to decide by"));
    }
    const size_t last = bodies.size() - 1;
    size_t known = bodies.size();
    if (last == 0 || IsDecided(*node, last, &known)) {
      const CallInlining::Body& body = *bodies[last == 0 ? 0 : known];
      PF_RETURN_IF_ERROR(CheckTypes(*node, "Tin", ArgsOf(*body.graph)));
      PF_RETURN_IF_ERROR(CheckTypes(*node, "Tout", RetvalsOf(*body.graph)));
      const RewriteScope rewrite(context_, graph_, {node});
      if (!rewrite) return std::vector<Node*>();
      ++decided_;
      return inlining_.InlineAt(graph_, node, 1, body, in_frame_);
    }
    DType type = DType::kInt32;
    if (!IsCase(*node)) {
      PF_ASSIGN_OR_RETURN(type, TypeAttr(*node, "Tcond"));
      if (!IsBoolLike(type)) {
        context_->MissIfWanted(*node, "decides by a ", DTypeName(type), ", expected a bool or a number");
        return std::vector<Node*>();
      }
    }
    const RewriteScope rewrite(context_, graph_, {node});
    if (!rewrite) return std::vector<Node*>();
    std::vector<Branch> branches;
    PF_ASSIGN_OR_RETURN(const TensorRef condition, Condition(node, type));
    if (IsCase(*node)) {
      PF_ASSIGN_OR_RETURN(branches, CaseBranches(node, condition, bodies));
    } else {
      PF_ASSIGN_OR_RETURN(const TensorRef predicate,
                          AsBool(graph_, node, condition, type, in_frame_ ? condition.node : nullptr));
      branches.push_back({bodies[0], "else", predicate, 0});
      branches.push_back({bodies[1], "then", predicate, 1});
    }
    in_frame_ = true;
    ++lowered_;
    return LowerBranches(graph_, node, branches, inlining_.budget());
  }

  // Returns the condition, which waits for the node's control inputs.
  absl::StatusOr<TensorRef> Condition(Node* node, DType type) {
    const TensorRef condition = node->input(0);
    const bool is_switch = condition.node->op() == ops::kSwitch;
    if (node->num_inputs() == node->num_data_inputs() && !is_switch) return condition;
    const std::string name = graph_->UniqueName(absl::StrCat(node->name(), "/condition"));
    PF_ASSIGN_OR_RETURN(Node * waits, graph_->AddNode(name, ops::kIdentity, node));
    waits->SetAttr("T", AttrValue::Type(type));
    graph_->AddInput(waits, condition);
    for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) graph_->AddInput(waits, node->input(i));
    return TensorRef{waits, 0};
  }

  // Returns true, and sets *branch, if the branch is selected by a constant.
  static bool IsDecided(const Node& node, size_t last, size_t* branch) {
    const absl::StatusOr<Tensor> value = ConstValue(*node.input(0).node);
    if (!value.ok()) return false;
    if (IsCase(node)) {
      const absl::StatusOr<size_t> chosen = ChosenBranch(*value, last + 1);
      if (chosen.ok()) *branch = *chosen;
      return chosen.ok();
    }
    *branch = MeansTrue(*value) ? 1 : 0;
    return true;
  }

  // Returns one branch for each index; the last also runs for any other index, as in TensorFlow.
  absl::StatusOr<std::vector<Branch>> CaseBranches(Node* node, TensorRef index, const Bodies& bodies) {
    const auto add = [&](absl::string_view name, Op op, TensorRef a, TensorRef b) -> absl::StatusOr<TensorRef> {
      const std::string full = graph_->UniqueName(absl::StrCat(node->name(), "/", name));
      PF_ASSIGN_OR_RETURN(Node * made, graph_->AddNode(full, op, node));
      if (op != ops::kLogicalOr) made->SetAttr("T", AttrValue::Type(DType::kInt32));
      graph_->AddInput(made, a);
      graph_->AddInput(made, b);
      return TensorRef{made, 0};
    };
    const auto number = [&](size_t value) -> absl::StatusOr<TensorRef> {
      const std::string name = graph_->UniqueName(absl::StrCat(node->name(), "/", value));
      PF_ASSIGN_OR_RETURN(Node * made,
                          graph_->AddConst(name, Tensor::Scalar<int32_t>(static_cast<int32_t>(value)), node));
      if (in_frame_) graph_->AddInput(made, {index.node, kControlPort});
      return TensorRef{made, 0};
    };
    std::vector<Branch> branches;
    const size_t last = bodies.size() - 1;
    TensorRef zero, end;
    for (size_t i = 0; i < last; ++i) {
      PF_ASSIGN_OR_RETURN(const TensorRef value, number(i));
      if (i == 0) zero = value;
      PF_ASSIGN_OR_RETURN(const TensorRef is_it, add(absl::StrCat("is_", i), ops::kEqual, index, value));
      branches.push_back({bodies[i], absl::StrCat("branch_", i), is_it, 1});
    }
    if (last == 1) {
      branches.push_back({bodies[1], "branch_1", branches[0].predicate, 0});
      return branches;
    }
    PF_ASSIGN_OR_RETURN(end, number(last));
    PF_ASSIGN_OR_RETURN(const TensorRef below, add("is_below", ops::kLess, index, zero));
    PF_ASSIGN_OR_RETURN(const TensorRef beyond, add("is_beyond", ops::kGreaterEqual, index, end));
    PF_ASSIGN_OR_RETURN(const TensorRef other, add("is_other", ops::kLogicalOr, below, beyond));
    branches.push_back({bodies[last], absl::StrCat("branch_", last), other, 1});
    return branches;
  }

  absl::StatusOr<std::vector<Node*>> LowerWhile(Node* node, const Bodies& bodies) {
    if (node->num_data_inputs() == 0) {
      context_->MissIfWanted(*node, "has no loop variables");
      return std::vector<Node*>();
    }
    const std::vector<Node*> verdicts = RetvalsOf(*bodies[0]->graph);
    if (!verdicts.empty()) {
      PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(*verdicts[0], "T"));
      if (!IsBoolLike(type)) {
        context_->MissIfWanted(*node, "its condition is a ", DTypeName(type), ", expected a bool or a number");
        return std::vector<Node*>();
      }
    }
    const RewriteScope rewrite(context_, graph_, {node});
    if (!rewrite) return std::vector<Node*>();
    in_frame_ = true;
    ++lowered_;
    return LowerLoop(graph_, node, *bodies[0], *bodies[1], inlining_.budget());
  }

  Graph* graph_;
  const FunctionLibrary& library_;
  PassContext* context_;
  CallInlining inlining_;
  absl::flat_hash_map<std::string, std::string> obstacles_;  // By function; empty if there is none.
  bool in_frame_ = false;
  int64_t lowered_ = 0;
  int64_t decided_ = 0;
};

// Notes calls of functions, whose bodies are not searched for control flow.
void TellOfCalls(const Graph& graph, PassContext* context) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kPartitionedCall && node->op() != ops::kStatefulPartitionedCall) continue;
    context->MissIfWanted(*node, WayOut{"run inline_partitionedcall first"},
                          "functions that it calls are not processed");
  }
}

absl::StatusOr<int64_t> Lower(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  Lowering lowering(graph, library, params, context);
  PF_RETURN_IF_ERROR(lowering.Run());
  TellOfCalls(*graph, context);
  size_t pruned = 0;
  if (params.prune_functions && graph->first() != nullptr && context->AllowRewrite(*graph->first())) {
    PF_ASSIGN_OR_RETURN(const auto needed, library.Reachable(library.CalledBy(*graph)));
    pruned = library.Retain(needed);
    library.Store(graph);
  }
  if (lowering.lowered() + lowering.decided() > 0) {
    context->Note(absl::StrCat("choices and loops as V1 control flow: ", lowering.lowered(),
                               "; choices that a constant makes: ", lowering.decided()));
  }
  if (pruned > 0) context->Note(absl::StrCat("functions dropped from the library: ", pruned));
  return lowering.lowered() + lowering.decided() + static_cast<int64_t>(pruned);
}

}  // namespace

// Replaces StatelessIf, If, StatelessCase, Case, StatelessWhile and While by the bodies of their functions, connected
// by the control flow ops of TensorFlow 1. All runtimes support these ops, and other passes can optimise across them.
//
//   If(c, x; then=f, else=g)   =>   Merge(g(Switch(x, c):0), f(Switch(x, c):1))
//   While(x; cond=c, body=b)   =>   Exit(s:0), with m = Merge(Enter(x), NextIteration(b(s:1))) and
//                                   s = Switch(m, LoopCond(c(m)))
//
// If the condition is constant, the node is replaced by the selected branch. Calls and control flow inside the bodies
// are replaced as well. A numeric condition is true if it is not 0. A loop variable that the body does not change
// becomes a constant of the frame.
//
// Leaves unchanged declared inputs, string conditions, recursive functions, and functions in which outputs of an
// unknown op are read. Functions called by a PartitionedCall of the graph are not processed.
DEFINE_PASS(lower_control_flow) {
  return Pass<Params>("Converts If, Case and While with functions into Switch, Merge, Enter and Exit.")
      .Why(
          "Runtimes without support for functions can then run the model, and other passes can optimise inside "
          "branches and loops.")
      .Param("prune_functions", &Params::prune_functions, "Remove the functions that are no longer called.")
      .Param("max_nodes", &Params::max_nodes,
             "Maximum number of nodes of the result; nested functions can expand a small file without limit, so more "
             "is an error.",
             AtLeast(1))
      .Numerics(Exact())
      .Idempotent()
      .Run(Lower);
}

}  // namespace permafrost

// Runs function bodies on tensors.
#include "transforms/rewrites/function_evaluation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Maximum depth of nested branches and loops. Calls do not count, since they are already inlined.
constexpr int kMostDepth = 50;
// Number of nodes that one run of a pass computes inside functions: about a second.
constexpr int64_t kMostSteps = 1'000'000;

absl::StatusOr<FunctionRef> FunctionAttr(const Node& node, absl::string_view key) {
  const AttrValue* attr = node.FindAttr(key);
  if (attr == nullptr) return absl::NotFoundError(absl::StrCat(node.Describe(), ": attr '", key, "' is missing"));
  return attr->AsFunction();
}

}  // namespace

bool MeansTrue(const Tensor& tensor) {
  if (tensor.shape().rank() != 0) return tensor.num_elements() > 0;
  if (tensor.dtype() == DType::kString) return !tensor.strings()[0].empty();
  bool result = false;
  if (DispatchOn<float, double>(tensor.dtype(),
                                [&](auto tag) { result = tensor.elements<typename decltype(tag)::type>()[0] != 0; })) {
    return result;
  }
  if (DispatchOn<Half, BFloat16>(tensor.dtype(), [&](auto tag) {
        result = ToFloat(tensor.elements<typename decltype(tag)::type>()[0]) != 0;
      })) {
    return result;
  }
  return std::any_of(tensor.bytes().begin(), tensor.bytes().end(), [](char byte) { return byte != 0; });
}

absl::StatusOr<size_t> ChosenBranch(const Tensor& index, size_t count) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerValues(index));
  if (values.size() != 1 || count == 0) return absl::InvalidArgumentError("the index of a branch is not one number");
  return values[0] < 0 || values[0] >= static_cast<int64_t>(count) ? count - 1 : static_cast<size_t>(values[0]);
}

bool FunctionEvaluation::IsCall(const Node& node) {
  const Op op = node.op();
  return op == ops::kPartitionedCall || op == ops::kStatefulPartitionedCall || op == ops::kStatelessIf ||
         op == ops::kIf || op == ops::kStatelessCase || op == ops::kCase || op == ops::kStatelessWhile ||
         op == ops::kWhile;
}

absl::StatusOr<std::vector<Tensor>> FunctionEvaluation::Run(const Node& node, absl::Span<const Tensor> inputs,
                                                            int depth) {
  if (depth > kMostDepth) {
    return absl::UnimplementedError(absl::StrCat("branches and loops are nested more than ", kMostDepth, " deep"));
  }
  const Op op = node.op();
  if (op == ops::kPartitionedCall || op == ops::kStatefulPartitionedCall) {
    PF_ASSIGN_OR_RETURN(const FunctionRef function, FunctionAttr(node, "f"));
    return RunFunction(node, function, inputs, depth);
  }
  if (op == ops::kStatelessWhile || op == ops::kWhile) return RunLoop(node, inputs, depth);
  if (inputs.empty()) return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": has no input to decide by"));
  if (op == ops::kStatelessIf || op == ops::kIf) {
    PF_ASSIGN_OR_RETURN(const FunctionRef function,
                        FunctionAttr(node, MeansTrue(inputs[0]) ? "then_branch" : "else_branch"));
    return RunFunction(node, function, inputs.subspan(1), depth);
  }
  const AttrValue* attr = node.FindAttr("branches");
  if (attr == nullptr) return absl::NotFoundError(absl::StrCat(node.Describe(), ": attr 'branches' is missing"));
  PF_ASSIGN_OR_RETURN(const std::vector<FunctionRef> branches, attr->AsFunctionList());
  PF_ASSIGN_OR_RETURN(const size_t branch, ChosenBranch(inputs[0], branches.size()));
  return RunFunction(node, branches[branch], inputs.subspan(1), depth);
}

absl::StatusOr<std::vector<Tensor>> FunctionEvaluation::RunLoop(const Node& node, absl::Span<const Tensor> inputs,
                                                                int depth) {
  PF_ASSIGN_OR_RETURN(const FunctionRef condition, FunctionAttr(node, "cond"));
  PF_ASSIGN_OR_RETURN(const FunctionRef body, FunctionAttr(node, "body"));
  std::vector<Tensor> values(inputs.begin(), inputs.end());
  while (true) {
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> verdict, RunFunction(node, condition, values, depth));
    if (verdict.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.Describe(), ": its condition gives ", verdict.size(), " values, expected 1"));
    }
    if (!MeansTrue(verdict[0])) return values;
    PF_ASSIGN_OR_RETURN(values, RunFunction(node, body, values, depth));
  }
}

absl::StatusOr<std::vector<Tensor>> FunctionEvaluation::RunFunction(const Node& node, const FunctionRef& function,
                                                                    absl::Span<const Tensor> inputs, int depth) {
  PF_ASSIGN_OR_RETURN(const CallInlining::Body* body, inlining_.BodyOf(node, function));
  const Schedule& schedule = ScheduleOf(*body);
  PF_RETURN_IF_ERROR(Annotate(schedule.obstacle, absl::StrCat("function '", function.name, "'")));
  const std::vector<Node*> args = ArgsOf(*schedule.body);
  if (args.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": has ", inputs.size(),
                                                   " arguments, but function '", function.name, "' takes ",
                                                   args.size()));
  }
  std::vector<std::vector<Tensor>> values(schedule.body->id_limit());
  std::vector<uint32_t> reads = schedule.reads;
  for (size_t i = 0; i < args.size(); ++i) values[args[i]->id()] = {inputs[i]};
  std::vector<Tensor> outputs;
  steps_ += static_cast<int64_t>(1 + schedule.body->id_limit() /
                                         8);  // Cost of the lists above, which are built for each call.
  for (const Node* each : schedule.order) {
    if (++steps_ > kMostSteps) {
      return absl::ResourceExhaustedError(absl::StrCat("evaluating functions takes more than ", kMostSteps, " steps"));
    }
    if (each->op() == ops::k_Arg) continue;
    std::vector<Tensor> operands;
    for (int i = 0; i < each->num_data_inputs(); ++i) {
      const TensorRef ref = each->input(i);
      std::vector<Tensor>& source = values[ref.node->id()];
      if (ref.port >= static_cast<int>(source.size())) {
        return absl::InvalidArgumentError(absl::StrCat(each->Describe(), ": reads output ", ref.port, " of ",
                                                       ref.node->Describe(), ", which has none"));
      }
      operands.push_back(source[ref.port]);
      if (--reads[ref.node->id()] == 0) std::vector<Tensor>().swap(source);
    }
    if (each->op() == ops::k_Retval) {
      outputs.push_back(std::move(operands[0]));
    } else if (IsCall(*each)) {
      PF_ASSIGN_OR_RETURN(values[each->id()], Run(*each, operands, depth + 1));
    } else {
      PF_ASSIGN_OR_RETURN(values[each->id()], evaluator_.Evaluate(*each, operands));
    }
  }
  return outputs;
}

const FunctionEvaluation::Schedule& FunctionEvaluation::ScheduleOf(const CallInlining::Body& body) {
  std::unique_ptr<Schedule>& schedule = schedules_[&body];
  if (schedule != nullptr) return *schedule;
  schedule = std::make_unique<Schedule>();
  if (body.graph == nullptr) {
    schedule->obstacle = absl::UnimplementedError(body.obstacle);
  } else if (body.has_effect) {
    schedule->obstacle = absl::UnimplementedError("has side effects");
  } else {
    schedule->obstacle = MakeSchedule(*body.graph, schedule.get());
  }
  return *schedule;
}

absl::Status FunctionEvaluation::MakeSchedule(const Graph& body, Schedule* schedule) {
  schedule->body = &body;
  const std::vector<Node*> retvals = RetvalsOf(body);
  const std::vector<bool> needed = ReachedBackwards(body, retvals, {});
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(body));
  schedule->reads.assign(body.id_limit(), 0);
  for (const Node* node : order) {
    if (!needed[node->id()] || node->op() == ops::k_Retval) continue;
    const OpSchema* schema = FindSchema(node->op());
    if (schema != nullptr && schema->Is(kControlFlow)) {
      return absl::UnimplementedError(absl::StrCat(node->Describe(), " is control flow"));
    }
    if (exclude_ops_.contains(node->op().name())) {
      return absl::UnimplementedError(absl::StrCat(node->Describe(), " is excluded by exclude_op"));
    }
    if (node->op() != ops::k_Arg && !IsCall(*node)) PF_RETURN_IF_ERROR(evaluator_.Supports(*node));
    schedule->order.push_back(node);
  }
  // The outputs in their order.
  schedule->order.insert(schedule->order.end(), retvals.begin(), retvals.end());
  for (const Node* node : schedule->order) {
    for (int i = 0; i < node->num_data_inputs(); ++i) ++schedule->reads[node->input(i).node->id()];
  }
  return absl::OkStatus();
}

}  // namespace permafrost

// Finds the forms of loops, and keeps their plans.
#include "runtime_check/program/fused_loop.h"

#ifndef SELECTIVE_REGISTRATION

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/tensor_array.h"
#include "runtime_check/kernels/tensor_list.h"
#include "runtime_check/program/loop_plan.h"
#include "runtime_check/program/loop_planner.h"

namespace permafrost {
namespace {

LoopFunction FunctionOf(const Program& program) {
  LoopFunction function;
  for (const ProgramFeed& feed : program.feeds) function.arguments.push_back(program.tensors[feed.tensor].ref);
  for (const int fetch : program.fetches) function.results.push_back(program.tensors[fetch].ref);
  for (const ProgramNode& node : program.nodes) function.nodes.push_back(node.node);
  return function;
}

absl::flat_hash_set<TensorRef> FedTensors(const Program& program) {
  absl::flat_hash_set<TensorRef> fed;
  for (const ProgramFeed& feed : program.feeds) fed.insert(program.tensors[feed.tensor].ref);
  return fed;
}

// Returns the Const that holds the tensor; null if there is none, or if a tensor on the way is fed.
const Node* ConstantBehind(TensorRef ref, const absl::flat_hash_set<TensorRef>& fed) {
  while (!fed.contains(ref)) {
    if (ref.node->op() == ops::kConst) return ref.node;
    if (ref.node->num_data_inputs() == 0) return nullptr;
    const TensorRef behind = BehindPasses(ref);
    if (behind == ref) return nullptr;
    // One step at a time, so that no fed tensor is passed.
    ref = ref.node->input(ref.port);
  }
  return nullptr;
}

// The types and shapes of the arguments; of a list, those of its elements.
std::vector<OutputSpec> KeyOf(absl::Span<const Passed> arguments) {
  std::vector<OutputSpec> key;
  for (const Passed& argument : arguments) {
    const Value& value = argument.value;
    OutputSpec spec{value.dtype, value.shape, false};
    if (value.objects != nullptr && value.objects->size() == 1) {
      const auto add = [&](DType dtype, const Shape& declared, const ElementStore& elements) {
        spec = {dtype, declared, true};
        for (int64_t i = 0; i < elements.size() && !spec.shape.IsFullyKnown(); ++i) {
          if (elements[i] != nullptr) spec.shape = elements[i]->tensor.shape();
        }
        key.push_back({dtype, declared, true});
      };
      const ObjectRef& object = value.objects->front();
      if (const auto list = ObjectAs<TensorList>(object); list.ok()) {
        add((*list)->dtype, (*list)->shape, (*list)->elements);
      } else if (const auto array = ObjectAs<TensorArray>(object); array.ok()) {
        add((*array)->dtype, (*array)->shape, (*array)->elements);
        spec.depends_on_values = !(*array)->is_closed;
      }
    }
    key.push_back(std::move(spec));
  }
  return key;
}

// Plans are kept for this many sets of shapes.
constexpr size_t kMostPlans = 4;
// After this many plans no new one is made: a loop whose shapes change in each run pays more than it gains.
constexpr int kMostMade = 32;

}  // namespace

struct FusedLoop::Plans {
  struct Entry {
    std::vector<OutputSpec> key;
    std::unique_ptr<LoopPlan> plan;  // Null if the loop was declined.
  };
  std::vector<Entry> entries;  // The last one is the one that was used last.
  int num_made = 0;
  PackedLoopMatrices packed;
};

void FusedLoop::AddNodes(const Program& program) {
  for (const ProgramNode& node : program.nodes) kernels_.emplace(node.node, node.kernel);
}

void FusedLoop::SetForm(absl::StatusOr<LoopForm> form, const Program& outside) {
  if (!form.ok()) {
    reason_ = std::string(form.status().message());
    return;
  }
  const absl::flat_hash_set<TensorRef> fed = FedTensors(outside);
  for (const LoopVariable& variable : form->variables) {
    constants_.push_back(variable.initial.node == nullptr ? nullptr : ConstantBehind(variable.initial, fed));
  }
  form_ = *std::move(form);
}

std::shared_ptr<FusedLoop> FusedLoop::OfWhile(const Program& program, const ProgramNode& node, const Program& condition,
                                              const Program& body, const std::string& name) {
  auto loop = std::make_shared<FusedLoop>();
  loop->name_ = name;
  loop->AddNodes(condition);
  loop->AddNodes(body);
  absl::StatusOr<LoopForm> form = FormOfWhile(FunctionOf(condition), FunctionOf(body));
  if (form.ok() && form->variables.size() == static_cast<size_t>(node.node->num_data_inputs())) {
    for (size_t i = 0; i < form->variables.size(); ++i) {
      form->variables[i].initial = node.node->input(static_cast<int>(i));
    }
  }
  loop->SetForm(std::move(form), program);
  return loop;
}

std::shared_ptr<FusedLoop> FusedLoop::OfFrame(const Program& program, int frame) {
  if (frame == 0) return nullptr;
  auto loop = std::make_shared<FusedLoop>();
  loop->name_ = program.frames[frame].name;
  const absl::flat_hash_set<TensorRef> fed = FedTensors(program);
  std::vector<const Node*> nodes;
  for (int i = program.frames[frame].begin; i < program.frames[frame].end; ++i) {
    const ProgramNode& node = program.nodes[i];
    for (int j = 0; j < node.node->num_data_inputs(); ++j) {
      if (fed.contains(node.node->input(j))) {
        loop->reason_ = absl::StrCat(node.node->Describe(), " reads an input of the session");
        return loop;
      }
    }
    nodes.push_back(node.node);
    loop->kernels_.emplace(node.node, node.kernel);
  }
  loop->SetForm(FormOfFrame(nodes), program);
  return loop;
}

absl::StatusOr<const Tensor*> FusedLoop::ConstantOf(size_t variable) {
  if (variable >= constants_.size() || constants_[variable] == nullptr) return nullptr;
  values_.resize(constants_.size());
  Tensor& value = values_[variable];
  if (value.dtype() == DType::kInvalid) {
    PF_ASSIGN_OR_RETURN(const Tensor raw, ConstValue(*constants_[variable]));
    PF_ASSIGN_OR_RETURN(value, raw.Aligned());
  }
  return &value;
}

absl::StatusOr<std::optional<std::vector<Passed>>> FusedLoop::Run(absl::Span<const Passed> arguments,
                                                                  const Environment& environment) {
  if (!form_.has_value() || arguments.size() != form_->variables.size()) return std::nullopt;
  if (plans_ == nullptr) plans_ = std::make_shared<Plans>();
  std::vector<Plans::Entry>& entries = plans_->entries;
  std::vector<OutputSpec> key = KeyOf(arguments);
  const auto same = [&](const Plans::Entry& entry) {
    return std::equal(entry.key.begin(), entry.key.end(), key.begin(), key.end(),
                      [](const OutputSpec& a, const OutputSpec& b) {
                        return a.dtype == b.dtype && a.shape == b.shape && a.depends_on_values == b.depends_on_values;
                      });
  };
  const auto found = std::find_if(entries.begin(), entries.end(), same);
  if (found != entries.end()) {
    std::rotate(found, found + 1, entries.end());
  } else {
    if (plans_->num_made >= kMostMade) return std::nullopt;
    ++plans_->num_made;
    LoopRequest request;
    request.name = name_;
    request.form = &*form_;
    request.kernels = &kernels_;
    request.constants = constants_;
    request.arguments = arguments;
    request.packed = &plans_->packed;
    absl::StatusOr<std::unique_ptr<LoopPlan>> plan = MakeLoopPlan(request, environment);
    reason_ = std::string(plan.ok() ? "" : plan.status().message());
    if (absl::IsCancelled(plan.status())) return plan.status();
    if (entries.size() == kMostPlans) entries.erase(entries.begin());
    entries.push_back({std::move(key), plan.ok() ? *std::move(plan) : nullptr});
  }
  LoopPlan* plan = entries.back().plan.get();
  if (plan == nullptr) return std::nullopt;
  PF_ASSIGN_OR_RETURN(std::optional<std::vector<Passed>> results, plan->Run(arguments, environment));
  if (!results.has_value()) reason_ = "an element that is read or written does not fit in this run";
  return results;
}

void FusedLoop::AddReport(absl::string_view function, PlanReport* report) const {
  const LoopPlan* plan = plans_ == nullptr || plans_->entries.empty() ? nullptr : plans_->entries.back().plan.get();
  if (plan == nullptr && reason_.empty()) return;
  LoopReport& loop = report->loops.emplace_back();
  loop.loop = name_;
  loop.function = std::string(function);
  loop.reason = reason_;
  if (plan != nullptr) loop.steps = plan->Describe();
}

}  // namespace permafrost

#endif

namespace permafrost {

void AddLoopReports(const Program& program, absl::string_view function, PlanReport* report) {
  if constexpr (kFusesLoops) {
    for (const FunctionCall& call : program.calls) {
      if (call.fused != nullptr && *call.fused != nullptr) (*call.fused)->AddReport(function, report);
    }
    for (const Frame& frame : program.frames) {
      if (frame.fused != nullptr) frame.fused->AddReport(function, report);
    }
  }
}

}  // namespace permafrost

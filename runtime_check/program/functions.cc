// Compiles function bodies and runs them.
#include "runtime_check/program/functions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/execution/plan_call.h"
#include "runtime_check/planning/cluster.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program/fused_loop.h"

namespace permafrost {

absl::StatusOr<std::vector<Passed>> CompiledFunction::Call(absl::Span<const Passed> arguments,
                                                           const Environment& environment) {
  if (arguments.size() != program_.feeds.size()) {
    return absl::InvalidArgumentError(absl::StrCat("function '", name(), "': found ", arguments.size(),
                                                   " arguments, expected ", program_.feeds.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const DType expected = program_.tensors[program_.feeds[i].tensor].dtype;
    if (arguments[i].value.dtype != expected) {
      return absl::InvalidArgumentError(absl::StrCat("function '", name(), "': argument ", i, " is ",
                                                     DTypeName(arguments[i].value.dtype), ", expected ",
                                                     DTypeName(expected)));
    }
  }
  if (*environment.call_depth >= FunctionTable::kMostNested) {
    return absl::ResourceExhaustedError(absl::StrCat("function '", name(), "': calls nest deeper than ",
                                                     FunctionTable::kMostNested, "; does it call itself without end?"));
  }
  const auto shape_of = [&](size_t i) -> const Shape& { return arguments[i].value.shape; };
  PlanCache::Entry* entry = plans_.FindLast(arguments.size(), shape_of);
  if (entry == nullptr) {
    std::vector<Shape> shapes;
    shapes.reserve(arguments.size());
    for (const Passed& argument : arguments) shapes.push_back(argument.value.shape);
    absl::StatusOr<PlanCache::Entry*> acquired = plans_.Acquire(program_, std::move(shapes), environment);
    if (!acquired.ok()) return Annotate(acquired.status(), absl::StrCat("function '", name(), "'"));
    entry = *acquired;
  }
  entry->is_busy = true;
  ++*environment.call_depth;
  absl::StatusOr<std::vector<Passed>> results = Run(entry->plan.get(), arguments, environment);
  if (!results.ok() && plans_.FallBack(program_, entry, environment)) {
    results = Run(entry->plan.get(), arguments, environment);
  }
  --*environment.call_depth;
  entry->is_busy = false;
  if (entry->plan != nullptr) {
    for (std::shared_ptr<HeapOutput>& held : entry->plan->held) held.reset();
  }
  if (results.ok() || !environment.AnnotatesCalls()) return results;
  return Annotate(results.status(), absl::StrCat("function '", name(), "'"));
}

absl::StatusOr<std::vector<Passed>> CompiledFunction::Run(Plan* plan, absl::Span<const Passed> arguments,
                                                          const Environment& environment) {
  const std::string* caller = environment.profiler == nullptr ? nullptr : environment.profiler->EnterFunction(&name());
  absl::StatusOr<std::vector<Passed>> results = CallPlan(plan, arguments, environment);
  if (environment.profiler != nullptr) environment.profiler->EnterFunction(caller);
  return results;
}

void CompiledFunction::AddReport(PlanReport* report) const {
  AddLoopReports(program_, name(), report);
  const Plan* plan = plans_.last();
  if (plan == nullptr) return;
  plan->report.AddTo(name(), absl::StrCat("function '", name(), "'"), report);
  if (selection::kHoldsDelegates && plan->clustered != nullptr) plan->clustered->AddReports(name(), report);
}

void FunctionTable::AddReports(PlanReport* report) const {
  std::vector<const CompiledFunction*> functions;
  for (const auto& [key, function] : functions_) functions.push_back(function.get());
  std::sort(functions.begin(), functions.end(),
            [](const CompiledFunction* a, const CompiledFunction* b) { return a->name() < b->name(); });
  for (const CompiledFunction* function : functions) function->AddReport(report);
}

absl::StatusOr<std::unique_ptr<FunctionTable>> FunctionTable::For(const Graph& graph) {
  auto table = std::make_unique<FunctionTable>();
  PF_ASSIGN_OR_RETURN(table->library_, FunctionLibrary::Of(graph));
  return table;
}

absl::StatusOr<CompiledFunction*> FunctionTable::Get(const FunctionRef& reference) {
  PF_RETURN_IF_ERROR(library_.Require(reference.name).status());
  const std::string key = AttrValue::Function(reference).Encoded();
  std::unique_ptr<CompiledFunction>& function = functions_[key];
  if (function == nullptr) {
    function = std::make_unique<CompiledFunction>(reference);
    open_.push_back(function.get());
  }
  return function.get();
}

absl::Status FunctionTable::CompileAll(const ProgramContext& context) {
  while (!open_.empty()) {
    CompiledFunction* function = open_.back();
    open_.pop_back();
    PF_RETURN_IF_ERROR(Annotate(Compile(function, context), absl::StrCat("function '", function->name(), "'")));
  }
  return absl::OkStatus();
}

absl::Status FunctionTable::Compile(CompiledFunction* function, const ProgramContext& context) {
  PF_ASSIGN_OR_RETURN(function->body_, library_.Instantiate(function->reference_));
  std::vector<std::string> feeds, fetches, targets;
  for (const Node* arg : ArgsOf(*function->body_)) feeds.emplace_back(arg->name());
  for (const Node* retval : RetvalsOf(*function->body_)) {
    const TensorRef result = retval->input(0);
    fetches.push_back(absl::StrCat(result.node->name(), ":", result.port));
  }
  for (const Node* node : ControlOutputsOf(*function->body_)) targets.emplace_back(node->name());
  PF_ASSIGN_OR_RETURN(function->program_, BuildProgram(*function->body_, {feeds, fetches, targets}, context));
  function->program_.function = &function->reference_;
  return absl::OkStatus();
}

}  // namespace permafrost

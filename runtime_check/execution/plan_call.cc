// Runs plans whose arguments and results are passed by reference.
#include "runtime_check/execution/plan_call.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/execution/executor.h"

namespace permafrost {
namespace {

// Converts the fetches to results after the plan has run.
class ResultTaker {
 public:
  ResultTaker(const Plan& plan, absl::Span<const Passed> arguments, MemoryBudget* budget)
      : plan_(plan), arguments_(arguments), budget_(budget) {}

  absl::StatusOr<Passed> Take(size_t i) const {
    const int tensor = plan_.program().fetches[i];
    const FetchBinding& fetch = plan_.fetches[i];
    Passed result;
    if (fetch.constant.has_value()) {
      result.held = std::make_shared<HeapOutput>();
      PF_ASSIGN_OR_RETURN(result.held->tensor, fetch.constant->Aligned());
      result.value = ViewOf(result.held->tensor);
      return result;
    }
    result.value = plan_.values[tensor];
    if (!plan_.held.empty() && plan_.held[tensor] != nullptr) {
      result.held = plan_.held[tensor];
      return result;
    }
    // An argument that is returned unchanged.
    for (const Passed& argument : arguments_) {
      const Value& value = argument.value;
      if (value.dtype != result.value.dtype || value.strings != result.value.strings ||
          value.objects != result.value.objects || value.data != result.value.data) {
        continue;
      }
      result.held = argument.held;
      return result;
    }
    return CopyOnHeap(result.value, budget_);
  }

 private:
  const Plan& plan_;
  absl::Span<const Passed> arguments_;
  MemoryBudget* budget_;
};

// A larger result is allocated for each call: its computation takes longer than its allocation.
constexpr int64_t kMostSpareBytes = 64 << 10;

// Returns memory for the result `fetch`, that of an earlier result if nothing refers to it any more.
absl::StatusOr<Passed> MemoryFor(Plan* plan, size_t fetch, MemoryBudget* budget) {
  const Value& value = plan->values[plan->program().fetches[fetch]];
  if (plan->spare_results == nullptr) plan->spare_results = std::make_shared<SpareResults>(plan->fetches.size());
  Passed result;
  std::shared_ptr<HeapOutput>* unused = nullptr;
  for (std::shared_ptr<HeapOutput>& spare : (*plan->spare_results)[fetch]) {
    if (spare == nullptr) {
      unused = &spare;
    } else if (spare.use_count() == 1 && spare->tensor.owner().use_count() == 1) {
      result.held = spare;
      result.value = ViewOf(spare->tensor);
      return result;
    }
  }
  result.held = std::make_shared<HeapOutput>();
  PF_ASSIGN_OR_RETURN(*result.held, AllocateHeapOutput(value.dtype, value.shape, budget, &result.value));
  if (unused != nullptr && result.value.bytes <= kMostSpareBytes) *unused = result.held;
  return result;
}

}  // namespace

absl::StatusOr<std::vector<Passed>> CallPlan(Plan* to_run, absl::Span<const Passed> arguments,
                                             const Environment& environment) {
  Plan& plan = *to_run;
  const std::vector<int>& fetches = plan.program().fetches;
  const size_t count = fetches.size();
  std::vector<Value> feeds;
  feeds.reserve(arguments.size());
  for (const Passed& argument : arguments) feeds.push_back(argument.value);
  std::vector<Passed> results(count);
  std::vector<char*> memory(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (plan.fetches[i].bound_values.empty()) continue;
    PF_ASSIGN_OR_RETURN(results[i], MemoryFor(&plan, i, environment.budget));
    memory[i] = results[i].value.data;
  }
  PF_RETURN_IF_ERROR(ExecutePlan(&plan, feeds, memory, &environment, nullptr));
  const ResultTaker taker(plan, arguments, environment.budget);
  for (size_t i = 0; i < count; ++i) {
    if (plan.flow != nullptr && plan.flow->dead_tensors[fetches[i]]) {
      return absl::InvalidArgumentError(absl::StrCat("result ", i, " lies on a branch that was not taken"));
    }
    if (results[i].held != nullptr) continue;
    PF_ASSIGN_OR_RETURN(results[i], taker.Take(i));
  }
  return results;
}

}  // namespace permafrost

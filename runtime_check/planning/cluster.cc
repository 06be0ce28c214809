// Plans and runs clusters.
#include "runtime_check/planning/cluster.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/execution/plan_call.h"

namespace permafrost {

absl::StatusOr<std::vector<Passed>> Cluster::Call(absl::Span<const Passed> arguments, const Environment& environment) {
  if (!Delegates() && without_delegate_ == nullptr) {
    without_delegate_ = std::make_unique<Environment>(environment);
    without_delegate_->delegate = nullptr;
  }
  const Environment& used = Delegates() ? environment : *without_delegate_;
  const auto shape_of = [&](size_t i) -> const Shape& { return arguments[i].value.shape; };
  PlanCache::Entry* entry = plans_.FindLast(arguments.size(), shape_of);
  if (entry == nullptr) {
    std::vector<Shape> shapes;
    shapes.reserve(arguments.size());
    for (const Passed& argument : arguments) shapes.push_back(argument.value.shape);
    PF_ASSIGN_OR_RETURN(entry, plans_.Acquire(program_, std::move(shapes), used));
  }
  absl::StatusOr<std::vector<Passed>> results = CallPlan(entry->plan.get(), arguments, used);
  if (!results.ok() && plans_.FallBack(program_, entry, used)) {
    results = CallPlan(entry->plan.get(), arguments, used);
  }
  if (entry->plan != nullptr) {
    for (std::shared_ptr<HeapOutput>& held : entry->plan->held) held.reset();
  }
  return results;
}

void Cluster::AddReport(absl::string_view function, PlanReport* report) const {
  const Plan* plan = plans_.last();
  DelegationReport& to = report->delegation;
  if (plan == nullptr || (without_delegate_ != nullptr && plan->report.delegation.partitions.empty() &&
                          plan->report.delegation.left.empty())) {
    const std::string reason =
        plan == nullptr ? "no run has reached it, so its shapes are unknown"
                        : absl::StrCat("its shapes change too often: it was compiled ", kMostCompiled, " times");
    for (const ProgramNode& node : program_.nodes) {
      if (node.kernel == nullptr) continue;
      to.left.push_back(
          {std::string(node.node->name()), std::string(node.node->op().name()), reason, std::string(function)});
    }
    return;
  }
  plan->report.AddTo(function, absl::StrCat("the nodes of ", program_.nodes.back().node->Describe(), " and before it"),
                     report);
  if (plan->clustered != nullptr) plan->clustered->AddReports(function, report);
}

void ClusteredProgram::AddReports(absl::string_view function, PlanReport* report) const {
  for (const std::unique_ptr<Cluster>& cluster : clusters) cluster->AddReport(function, report);
}

}  // namespace permafrost

// Joins the reports of plans.
#include "runtime_check/planning/plan_report.h"

#include "absl/strings/str_cat.h"

namespace permafrost {

void PlanReport::AddTo(absl::string_view function, absl::string_view place, PlanReport* report) const {
  DelegationReport& to = report->delegation;
  for (const DelegationReport::Taken& taken : delegation.partitions) {
    to.partitions.emplace_back(taken).function = std::string(function);
  }
  for (const DelegationReport::Left& left : delegation.left)
    to.left.emplace_back(left).function = std::string(function);
  for (const CustomNode& node : custom) report->custom.emplace_back(node).function = std::string(function);
  if (to.failure.empty() && !delegation.failure.empty()) to.failure = absl::StrCat(place, ": ", delegation.failure);
}

}  // namespace permafrost

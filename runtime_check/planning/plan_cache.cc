// Looks up, makes and drops plans.
#include "runtime_check/planning/plan_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegate.h"

namespace permafrost {
namespace {

absl::StatusOr<std::unique_ptr<Plan>> PlanWithoutDelegate(const Program& program, const std::vector<Shape>& shapes,
                                                          const Environment& environment, std::string reason) {
  absl::StatusOr<std::unique_ptr<Plan>> plan = BuildPlan(program, shapes, &environment, Delegation::kNone);
  if (plan.ok()) (*plan)->report.delegation.failure = std::move(reason);
  return plan;
}

}  // namespace

bool PlanCache::DropOldest() {
  const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                   [](const std::unique_ptr<Entry>& entry) { return !entry->is_busy; });
  if (oldest == entries_.end()) return false;
  entries_.erase(oldest);
  return true;
}

size_t PlanCache::DropOthers(const Entry* kept) {
  const auto goes = [&](const std::unique_ptr<Entry>& entry) { return !entry->is_busy && entry.get() != kept; };
  const auto end = std::remove_if(entries_.begin(), entries_.end(), goes);
  const auto count = static_cast<size_t>(entries_.end() - end);
  entries_.erase(end, entries_.end());
  return count;
}

absl::StatusOr<PlanCache::Entry*> PlanCache::Acquire(const Program& program, std::vector<Shape> shapes,
                                                     const Environment& environment) {
  size_t num_idle = 0;
  for (size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i]->is_busy) continue;
    ++num_idle;
    if (entries_[i]->plan == nullptr || entries_[i]->shapes != shapes || !entries_[i]->plan->IsCurrent()) continue;
    const auto found = entries_.begin() + static_cast<ptrdiff_t>(i);
    std::rotate(found, found + 1, entries_.end());
    return entries_.back().get();
  }
  for (; num_idle >= most_idle_; --num_idle) DropOldest();
  absl::StatusOr<std::unique_ptr<Plan>> plan = BuildPlan(program, shapes, &environment, Delegation::kAllowed);
  while (absl::IsResourceExhausted(plan.status()) && DropOldest()) {
    plan = BuildPlan(program, shapes, &environment, Delegation::kAllowed);
  }
  if (absl::IsResourceExhausted(plan.status()) && environment.delegate != nullptr) {
    plan = PlanWithoutDelegate(
        program, shapes, environment,
        absl::StrCat("the plan with ", environment.delegate->name(),
                     " does not fit the memory limit, so the reference kernels run everything for these input shapes: ",
                     plan.status().message()));
  }
  if (!plan.ok()) return plan.status();
  ++num_made_;
  auto entry = std::make_unique<Entry>();
  entry->shapes = std::move(shapes);
  entry->plan = *std::move(plan);
  return entries_.emplace_back(std::move(entry)).get();
}

bool PlanCache::FallBack(const Program& program, Entry* entry, const Environment& environment) {
  if (entry->plan == nullptr || !entry->plan->HasFailed()) return false;
  const std::string reason =
      absl::StrCat("a partition failed to run, so the reference kernels run everything for these input shapes: ",
                   entry->plan->failure().message());
  entry->plan.reset();  // Frees its memory before the next plan allocates.
  absl::StatusOr<std::unique_ptr<Plan>> plan = PlanWithoutDelegate(program, entry->shapes, environment, reason);
  if (absl::IsResourceExhausted(plan.status()) && DropOthers(entry) > 0) {
    plan = PlanWithoutDelegate(program, entry->shapes, environment, reason);
  }
  if (plan.ok()) entry->plan = *std::move(plan);
  return plan.ok();
}

}  // namespace permafrost

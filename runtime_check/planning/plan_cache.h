// The plans of one program for the input shapes that it was lately run with.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_CACHE_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_CACHE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Not thread-safe. What it is given must outlive it.
class PlanCache {
 public:
  // A plan that one run at a time may use.
  struct Entry {
    std::vector<Shape> shapes;
    std::unique_ptr<Plan> plan;  // Null only after FallBack failed; such an entry serves nobody.
    bool is_busy = false;        // Kept, and given to nobody else.
  };

  // Keeps so many plans that are not busy (1 or more).
  explicit PlanCache(size_t most_idle) : most_idle_(most_idle) {}

  // The plan for these shapes; it is made if there is none. The plans least recently used go first when there are too
  // many, or when they leave too little memory for the new one. What fits the memory only without the delegate is made
  // without. Errors of BuildPlan. The entry stays until the next call, and as long as it is busy.
  absl::StatusOr<Entry*> Acquire(const Program& program, std::vector<Shape> shapes, const Environment& environment);

  // Makes the plan again without the delegate if a partition of it failed in the last run. False if none did, or if
  // that fails too; then the entry has no plan.
  bool FallBack(const Program& program, Entry* entry, const Environment& environment);

  // The plan that was used last; null where there is none.
  const Plan* last() const { return entries_.empty() ? nullptr : entries_.back()->plan.get(); }

  // Drops all plans that are not busy but that of `kept` (may be null). Returns how many.
  size_t DropOthers(const Entry* kept);

 private:
  bool DropOldest();

  size_t most_idle_;
  std::vector<std::unique_ptr<Entry>> entries_;  // The last used at the end.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_CACHE_H_

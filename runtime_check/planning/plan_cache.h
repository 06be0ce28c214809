// A cache of the plans of one program, by input shapes.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_CACHE_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Keeps the most recently used plans. Not thread-safe. All arguments must outlive the cache.
class PlanCache {
 public:
  // A plan that one run at a time may use.
  struct Entry {
    std::vector<Shape> shapes;
    std::unique_ptr<Plan> plan;  // Null only after FallBack failed; such an entry is not reused.
    bool is_busy = false;        // In use: neither dropped nor returned again.
  };

  // Limits the number of plans that are not busy to `most_idle` (1 or more).
  explicit PlanCache(size_t most_idle) : most_idle_(most_idle) {}

  // Returns the plan for these shapes and the current shapes of variables, and makes it if it is not in the cache.
  // Drops the least recently used plans when there are too many, or when they leave too little memory for the new one.
  // A plan that exceeds the memory limit only with the delegate is made without it. Errors are those of BuildPlan. The
  // entry is valid until the next call, and as long as it is busy.
  absl::StatusOr<Entry*> Acquire(const Program& program, std::vector<Shape> shapes, const Environment& environment);

  // Returns the plan that was used last if it is for the shapes shape_of(0), ... and not busy, else null. Costs less
  // than Acquire.
  template <typename ShapeOf>
  Entry* FindLast(size_t num_shapes, ShapeOf shape_of) const {
    if (entries_.empty()) return nullptr;
    Entry* entry = entries_.back().get();
    if (entry->is_busy || entry->plan == nullptr || entry->shapes.size() != num_shapes) return nullptr;
    for (size_t i = 0; i < num_shapes; ++i) {
      if (entry->shapes[i] != shape_of(i)) return nullptr;
    }
    return entry->plan->IsCurrent() ? entry : nullptr;
  }

  // Makes the plan again without the delegate if a partition failed in the last run. Returns false if no partition
  // failed or if the new plan fails; after such a failure the entry has no plan.
  bool FallBack(const Program& program, Entry* entry, const Environment& environment);

  // Returns the number of plans that Acquire has made.
  int64_t num_made() const { return num_made_; }

  // Returns the plan that was used last; null if there is none.
  const Plan* last() const { return entries_.empty() ? nullptr : entries_.back()->plan.get(); }

  // Drops all plans that are not busy except that of `kept` (may be null). Returns their number.
  size_t DropOthers(const Entry* kept);

 private:
  bool DropOldest();

  size_t most_idle_;
  int64_t num_made_ = 0;
  std::vector<std::unique_ptr<Entry>> entries_;  // Least recently used first.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_CACHE_H_

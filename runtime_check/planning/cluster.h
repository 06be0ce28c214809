// Clusters: groups of nodes whose shapes are known only when a run reaches them, behind a branch, in a loop or behind a
// shape that depends on values. Each cluster is a program of its own, planned for the shapes that arrive, so its memory
// is laid out and a delegate takes its parts as in a graph with static shapes.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_CLUSTER_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_CLUSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/plan_cache.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

class Cluster {
 public:
  explicit Cluster(Program program) : program_(std::move(program)) {}
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const Program& program() const { return program_; }
  // Computes the results, with a plan for the shapes of the arguments. Results share no memory with arguments.
  // `environment` must outlive the cluster. Errors name the node, and are those of BuildPlan and ExecutePlan.
  absl::StatusOr<std::vector<Passed>> Call(absl::Span<const Passed> arguments, const Environment& environment);
  // Adds the report of the nodes, as they were planned last. `function` contains them.
  void AddReport(absl::string_view function, PlanReport* report) const;

 private:
  // Kept so that a loop which alternates between a few shapes needs no new plans.
  static constexpr size_t kMostIdle = 4;
  // A delegate compiles for this many sets of shapes: twice kMostIdle. Where more arrive, for instance in a decoder
  // whose sequence grows in each iteration, compiling costs more than the delegate saves.
  static constexpr int64_t kMostCompiled = 8;

  bool Delegates() const { return plans_.num_made() < kMostCompiled; }

  Program program_;
  std::unique_ptr<Environment> without_delegate_;  // Null until the cluster stops using the delegate.
  PlanCache plans_{kMostIdle};
};

// A program in which each cluster is one node, and its clusters.
struct ClusteredProgram {
  Program program;
  Graph nodes;  // The nodes that represent clusters.
  Kernel kernel{Kernel("nodes that are planned when a run reaches them")};
  std::vector<Reservation> reservations;  // For constants that clusters read.
  std::vector<std::unique_ptr<Cluster>> clusters;
  // Set if the memory limit has no room for a cluster, which needs more than its nodes do one at a time.
  absl::Status failure;

  // Calls Cluster::AddReport for all clusters, in order.
  void AddReports(absl::string_view function, PlanReport* report) const;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_CLUSTER_H_

// Loops whose iterations run as steps of one plan instead of calls of functions or executions of nodes: recurrent
// networks.
//
// The results are those of the reference kernels, bit for bit. A loop is planned when a run reaches it, for the shapes
// of its variables. A loop that has no plan, or whose plan does not fit a run, runs as any other.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FUSED_LOOP_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FUSED_LOOP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/analysis/loop_form.h"
#include "graph/base/selection.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Selective builds, whose aim is a small size, run all loops node by node.
inline constexpr bool kFusesLoops = !selection::kIsSelective;

// Not thread-safe.
class FusedLoop {
 public:
  // Makes the loop of a While that calls these functions, in a program whose node it is.
  static std::shared_ptr<FusedLoop> OfWhile(const Program& program, const ProgramNode& node, const Program& condition,
                                            const Program& body, const std::string& name);
  // Makes the loop of a frame; null for the program itself.
  static std::shared_ptr<FusedLoop> OfFrame(const Program& program, int frame);

  // Null if the loop has no form that can be planned.
  const LoopForm* form() const { return form_.has_value() ? &*form_ : nullptr; }

  // Returns the value of a variable that is a constant, which planning may have released; null for other variables.
  absl::StatusOr<const Tensor*> ConstantOf(size_t variable);

  // Runs the loop: the arguments are the variables of the form, in its order. Returns the values of the variables after
  // the last iteration, or null, without effects, if the loop must run as usual.
  absl::StatusOr<std::optional<std::vector<Passed>>> Run(absl::Span<const Passed> arguments,
                                                         const Environment& environment);

  // Adds the last plan, or the reason that there is none. Adds nothing before the first run.
  void AddReport(absl::string_view function, PlanReport* report) const;

 private:
  struct Plans;  // Defined in the source, because selective builds leave out the headers of plans.

  void SetForm(absl::StatusOr<LoopForm> form, const Program& outside);
  void AddNodes(const Program& program);

  std::string name_;
  std::optional<LoopForm> form_;
  absl::flat_hash_map<const Node*, const Kernel*> kernels_;
  std::vector<const Node*> constants_;  // By variable.
  std::vector<Tensor> values_;          // By variable: constants that were asked for; else of type kInvalid.
  std::shared_ptr<Plans> plans_;
  std::string reason_;  // The reason that there was no plan; empty if there was one.
};

// Calls AddReport for the loops of a program, which belongs to `function`.
void AddLoopReports(const Program& program, absl::string_view function, PlanReport* report);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FUSED_LOOP_H_

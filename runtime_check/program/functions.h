// The functions of a graph's library as the runtime sees them: each body compiled once, and planned once for each set
// of argument shapes.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FUNCTIONS_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FUNCTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/plan_cache.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// What a call to a function with the same attributes shares.
class CompiledFunction {
 public:
  explicit CompiledFunction(FunctionRef reference) : reference_(std::move(reference)) {}

  const std::string& name() const { return reference_.name; }
  const Program& program() const { return program_; }

  // Computes the results. A call from within a call of the same function gets a plan of its own. InvalidArgument for
  // arguments of the wrong number or types; errors name the function.
  absl::StatusOr<std::vector<Passed>> Call(absl::Span<const Passed> arguments, const Environment& environment);
  // Adds what became of the nodes when the body was planned last.
  void AddReport(PlanReport* report) const;

 private:
  friend class FunctionTable;

  // A few shapes in turn need no new plans.
  static constexpr size_t kMostIdle = 4;

  absl::StatusOr<std::vector<Passed>> Run(Plan* plan, absl::Span<const Passed> arguments,
                                          const Environment& environment);

  FunctionRef reference_;
  std::unique_ptr<Graph> body_;
  Program program_;
  PlanCache plans_{kMostIdle};
};

// Not thread-safe.
class FunctionTable {
 public:
  // Calls may nest so deep; a function that calls itself for ever is an error before it exhausts the stack.
  static constexpr int kMostNested = 200;

  // `graph` must outlive it. Errors of FunctionLibrary::Of.
  static absl::StatusOr<std::unique_ptr<FunctionTable>> For(const Graph& graph);

  // The function, which CompileAll compiles. InvalidArgument when the library has none of that name.
  absl::StatusOr<CompiledFunction*> Get(const FunctionRef& reference);
  // Null unless the library has a function of that name.
  const Function* Find(absl::string_view name) const { return library_.Find(name); }
  const FunctionLibrary& library() const { return library_; }

  // Compiles what Get has been asked for, and what that calls. REQUIRES: context.functions is this. Errors of
  // BuildProgram, with the function named.
  absl::Status CompileAll(const ProgramContext& context);
  // CompiledFunction::AddReport of all, by name.
  void AddReports(PlanReport* report) const;

 private:
  absl::Status Compile(CompiledFunction* function, const ProgramContext& context);

  FunctionLibrary library_;
  absl::flat_hash_map<std::string, std::unique_ptr<CompiledFunction>> functions_;  // By reference in wire form.
  std::vector<CompiledFunction*> open_;                                            // Not compiled yet.
};

// Does what a node that calls functions does (PartitionedCall, If, Case, While and the like). REQUIRES: node.call >= 0.
// Errors do not name the node.
absl::StatusOr<std::vector<Passed>> RunCall(const Program& program, const ProgramNode& node,
                                            std::vector<Passed> arguments, const Environment& environment);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FUNCTIONS_H_

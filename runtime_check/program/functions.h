// The functions of a graph's library at run time. Each body is compiled once, and planned once for each set of argument
// shapes.
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

// A compiled function, shared by all calls with the same attributes.
class CompiledFunction {
 public:
  explicit CompiledFunction(FunctionRef reference) : reference_(std::move(reference)) {}

  const std::string& name() const { return reference_.name; }
  const Program& program() const { return program_; }

  // Computes the results. A recursive call uses a plan of its own. InvalidArgument for arguments of the wrong number or
  // types; errors name the function.
  absl::StatusOr<std::vector<Passed>> Call(absl::Span<const Passed> arguments, const Environment& environment);
  // Adds the report of the nodes, as the body was planned last.
  void AddReport(PlanReport* report) const;

 private:
  friend class FunctionTable;

  // Kept so that calls which alternate between a few shapes need no new plans.
  static constexpr size_t kMostIdle = 4;

  absl::StatusOr<std::vector<Passed>> Run(Plan* plan, absl::Span<const Passed> arguments,
                                          const Environment& environment);

  FunctionRef reference_;
  std::unique_ptr<Graph> body_;
  Program program_;
  PlanCache plans_{kMostIdle};
};

// The compiled functions of a session. Not thread-safe.
class FunctionTable {
 public:
  // Maximum nesting depth of calls. A function that recurses without end fails with an error before it exhausts the
  // stack.
  static constexpr int kMostNested = 200;

  // Creates the table. `graph` must outlive it. Errors are those of FunctionLibrary::Of.
  static absl::StatusOr<std::unique_ptr<FunctionTable>> For(const Graph& graph);

  // Returns the function, which CompileAll compiles. InvalidArgument if the library has no function of that name.
  absl::StatusOr<CompiledFunction*> Get(const FunctionRef& reference);
  // Returns the definition; null unless the library has a function of that name.
  const Function* Find(absl::string_view name) const { return library_.Find(name); }
  const FunctionLibrary& library() const { return library_; }

  // Compiles all functions that were requested with Get, and those that they call. REQUIRES: context.functions is this.
  // Errors are those of BuildProgram, with the function named.
  absl::Status CompileAll(const ProgramContext& context);
  // Calls CompiledFunction::AddReport for all functions, by name.
  void AddReports(PlanReport* report) const;

 private:
  absl::Status Compile(CompiledFunction* function, const ProgramContext& context);

  FunctionLibrary library_;
  absl::flat_hash_map<std::string, std::unique_ptr<CompiledFunction>> functions_;  // By reference in wire form.
  std::vector<CompiledFunction*> open_;                                            // Not compiled yet.
};

// Runs a node that calls functions (PartitionedCall, If, Case, While and the like). REQUIRES: node.call >= 0. Errors do
// not name the node.
absl::StatusOr<std::vector<Passed>> RunCall(const Program& program, const ProgramNode& node,
                                            std::vector<Passed> arguments, const Environment& environment);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FUNCTIONS_H_

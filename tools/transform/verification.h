// Verifies a rewritten graph: runs the graphs before and after on the same inputs and compares the outputs.
#ifndef PERMAFROST_TOOLS_TRANSFORM_VERIFICATION_H_
#define PERMAFROST_TOOLS_TRANSFORM_VERIFICATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/session.h"
#include "tools/model/model_inputs.h"
#include "tools/model/time_limit.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

// Tolerance of output differences, as OutputDifference::relative().
struct Allowance {
  double tolerance = 0;
  bool is_unlimited = false;  // The passes declare that they change numbers, and no tolerance was given.
  std::string why;            // "exact", "within 2e-05", "changes outputs: weights are rounded".
};

// Returns the accuracy that the passes declare together: exact if all are exact, the sum of the declared tolerances
// otherwise, and no limit if one of them changes outputs. REQUIRES: CheckPipeline(calls) is OK.
Allowance DeclaredAllowance(absl::Span<const PassCall> calls);

// Returns whether one of the calls needs PassContext::measure_outputs. REQUIRES: presets are expanded.
bool AnyMeasuresOutputs(absl::Span<const PassCall> calls);

// The difference of one output over all input sets.
struct VerifiedOutput {
  std::string name;
  OutputDifference difference;
};

// The result of a verification.
struct Verdict {
  bool was_run = false;
  std::string why_not;  // The reason if the graph was not run.
  size_t num_inputs = 0;
  std::vector<VerifiedOutput> outputs;

  // Returns the largest OutputDifference::relative().
  double worst() const;
  // Returns the outputs that JudgeQuality() calls ruined.
  std::vector<std::string> RuinedOutputs() const;
  bool Passes(const Allowance& allowance) const;
};

// Returns the SQNR in dB of each output; for an output with exact values, that of the share of elements that differ.
// REQUIRES: verdict.was_run.
std::vector<double> OutputSqnrs(const Verdict& verdict);

// Holds the outputs of the original graph. If the runtime cannot run the graph, the verifier holds the reason.
class Verifier {
 public:
  // Runs `before`, whose interface must be declared, on `inputs`. If `inputs` is an error, that is the reason. All runs
  // together take at most `max_seconds`, and about a second more; afterwards, graphs are not verified.
  Verifier(const Graph& before, absl::StatusOr<std::vector<InputSet>> inputs, SessionOptions options,
           double max_seconds = kDefaultMaxTime);

  // Returns the error of CheckValidity for the original graph.
  const absl::Status& validity() const { return validity_; }

  // Runs `after` and compares. Its declared inputs and outputs correspond to those of the original graph by position.
  // An input that takes other images than before (graph/analysis/channel_map.h) is fed with matching ones, and one with
  // another batch with rows of the recorded inputs (batch_matching.h).
  // Returns validity() if it is an error; Aborted if `after` does not run, though the original did; ResourceExhausted
  // if it takes too much memory. Differences of a small output are judged by the scale of the output before
  // cancellation: OutputDifference::scale_floor is its sensitivity to rounding of the inputs.
  absl::StatusOr<Verdict> Check(const Graph& after) const;

  // Returns the values of `fetches` of `graph` for the first input set. Errors are those of Session.
  absl::StatusOr<std::vector<Tensor>> RunOnFirst(const Graph& graph, const std::vector<std::string>& fetches) const;

  // Returns the OutputSqnrs of `after`, which corresponds to the original graph as in Check(). FailedPrecondition if
  // verification is impossible.
  absl::StatusOr<std::vector<double>> MeasureOutputs(const Graph& after) const;

  // Returns an empty text if graphs can be checked, otherwise the reason why not.
  const std::string& why_not() const { return why_not_; }

 private:
  // Runs the graph on every set, with limits on time and memory. Cancelled if time ran out, ResourceExhausted if memory
  // did; the message names the flag.
  absl::StatusOr<std::vector<std::vector<Tensor>>> RunAll(const Graph& graph, const std::vector<std::string>& fetches,
                                                          absl::Span<const InputSet> sets) const;

  // Returns, by output, its change per unit of relative change of the inputs. Measured once, on first use.
  const std::vector<double>& Sensitivities() const;

  std::vector<InputSet> inputs_;
  SessionOptions options_;
  const double max_seconds_;
  mutable double seconds_left_;
  std::vector<std::vector<Tensor>> expected_;  // By input set, then by output.
  std::vector<int64_t> batches_;               // Of the original graph: DeclaredBatches().
  absl::Status validity_;
  std::string why_not_;
  // Returns whether `after` has inputs that take other images than those of the original graph.
  bool HasOtherInputs(const Graph& after) const;

  std::unique_ptr<Graph> before_;  // Null if no output is small and no input takes images.
  bool has_small_outputs_ = false;
  mutable std::optional<std::vector<double>> sensitivities_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_VERIFICATION_H_

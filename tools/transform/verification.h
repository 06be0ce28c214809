// Proves that a graph still answers as it did: runs it before and after on the same inputs and compares.
#ifndef PERMAFROST_TOOLS_TRANSFORM_VERIFICATION_H_
#define PERMAFROST_TOOLS_TRANSFORM_VERIFICATION_H_

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
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

// How far outputs may be off: OutputDifference::relative().
struct Allowance {
  double tolerance = 0;
  bool is_unlimited = false;  // The passes declare that they change numbers, and no tolerance was given.
  std::string why;            // "exact", "within 2e-05", "changes numbers: weights are rounded".
};

// What the passes together declare: exact only when all are, the sum of the tolerances of those that give one, and no
// limit when one changes numbers. REQUIRES: CheckPipeline(calls) is OK.
Allowance DeclaredAllowance(absl::Span<const PassCall> calls);

// Whether one of the calls asks for PassContext::measure_outputs. REQUIRES: presets are expanded.
bool AnyMeasuresOutputs(absl::Span<const PassCall> calls);

// The difference of one output over all inputs together.
struct VerifiedOutput {
  std::string name;
  OutputDifference difference;
};

// What became of an attempt to verify.
struct Verdict {
  bool was_run = false;
  std::string why_not;  // When it was not run: what is missing.
  size_t num_inputs = 0;
  std::vector<VerifiedOutput> outputs;

  // The largest OutputDifference::relative().
  double worst() const;
  // The outputs that JudgeQuality() calls ruined.
  std::vector<std::string> RuinedOutputs() const;
  bool Passes(const Allowance& allowance) const;
};

// Holds what the graph answered before. A graph that the runtime cannot run gives a verifier that says why.
class Verifier {
 public:
  // Runs `before`, whose interface must be declared, on `inputs`.
  Verifier(const Graph& before, std::vector<InputSet> inputs, SessionOptions options);
  // One that verifies nothing, for that reason.
  explicit Verifier(std::string why_not) : why_not_(std::move(why_not)) {}

  // Runs `after`, whose declared inputs and outputs stand for those of before by position, and compares. Aborted when
  // it no longer runs, though it did before. A small difference of a small output is judged by the scale that the
  // output had before numbers cancelled out in it: OutputDifference::scale_floor is its sensitivity to rounding of the
  // inputs.
  absl::StatusOr<Verdict> Check(const Graph& after) const;

  // What `fetches` of `graph` are on the first set of inputs. Errors as of Session.
  absl::StatusOr<std::vector<Tensor>> RunOnFirst(const Graph& graph, const std::vector<std::string>& fetches) const;

  // Returns the SQNR in dB of each output of `after`, which stands for the graph before as in Check(). An output with
  // exact values has that of the share of elements that differ. FailedPrecondition when nothing can be checked.
  absl::StatusOr<std::vector<double>> MeasureOutputs(const Graph& after) const;

  // Empty when graphs can be checked: else why not.
  const std::string& why_not() const { return why_not_; }

 private:
  // By output, how far it moves for each unit of relative change of the inputs. Measured once, when first needed.
  const std::vector<double>& Sensitivities() const;

  std::vector<InputSet> inputs_;
  SessionOptions options_;
  std::vector<std::vector<Tensor>> expected_;  // By set of inputs, then by output.
  std::string why_not_;
  std::unique_ptr<Graph> before_;  // Null where no output is small.
  mutable std::optional<std::vector<double>> sensitivities_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_VERIFICATION_H_

// Runs two models on the same inputs and measures their output differences and accuracy.
#ifndef PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_
#define PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/session.h"
#include "tools/images/distortion.h"
#include "tools/model/model_inputs.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/scoring.h"

namespace permafrost {

// Counts of NaN and infinite elements of one model in one output.
struct NonFiniteCount {
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t runs = 0;  // Number of runs with such elements.

  bool any() const { return nans + infinities > 0; }
};

// The results for one output.
struct OutputValidation {
  std::string name;
  OutputDifference difference;
  NonFiniteCount reference_nonfinite, candidate_nonfinite;
  OutputScore score;  // Of kind kNone without labels, or if the labels are not for this output.
};

// Scores, by output, with one distortion applied to all pictures.
struct DistortedScores {
  Distortion distortion;
  std::vector<OutputScore> scores;
};

// The results of a validation.
struct Validation {
  size_t num_runs = 0;           // Number of batches that were run.
  size_t num_batches = 0;        // Total number of batches.
  bool was_interrupted = false;  // Stopped before the end; all results are from the runs until then.
  std::vector<OutputValidation> outputs;
  std::vector<DistortedScores> distorted;
  // Seconds of one run on the first batch; 0 if not measured.
  double reference_seconds = 0;
  double candidate_seconds = 0;
  PlanReport candidate_plan;  // The plan of its last run.
};

struct ValidationSettings {
  SessionOptions reference;
  SessionOptions candidate;
  int timed_runs = 0;  // Number of alternating runs of each model for the median time.
  std::vector<Distortion> distortions;
  uint64_t seed = 1;                                // Seeds the distortions.
  std::function<void(int64_t rows_done)> progress;  // May be empty.
  std::function<bool()> is_interrupted;             // Empty: never interrupted.
};

// A running model: its session, and the tensors of an input set that it takes.
class RunningModel {
 public:
  // Creates a session. `inputs` are those of the reference; `graph` may lack some of them. Errors are those of Session.
  static absl::StatusOr<RunningModel> Create(const Graph& graph, absl::Span<const Endpoint> inputs,
                                             absl::Span<const std::string> fetches, const SessionOptions& options);

  absl::StatusOr<std::vector<Tensor>> Run(const InputSet& set) const;
  const Session& session() const { return *session_; }

 private:
  std::unique_ptr<Session> session_;
  std::vector<Endpoint> declared_;  // The inputs at those positions, as they were given.
  std::vector<Endpoint> inputs_;    // The same in this graph.
  std::vector<size_t> positions_;
};

// Runs both graphs on every batch. The interface of `reference` must be declared. `candidate` has inputs and outputs of
// the same names; some inputs may be missing. Memory does not grow with the number of batches: only sums are kept.
// `labels` may be null, otherwise it has a label for each row of the source. Errors are those of Session and the
// source, with the model named; InvalidArgument for labels that fit no output.
absl::StatusOr<Validation> Validate(const Graph& reference, const Graph& candidate, BatchSource& source,
                                    const Labels* labels, const ValidationSettings& settings);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_

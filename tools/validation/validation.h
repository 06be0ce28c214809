// Runs two models on the same inputs and measures how far apart their answers are, and how right.
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

// Elements that are no finite numbers, of one model in one output.
struct NonFiniteCount {
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t runs = 0;  // In so many runs.

  bool any() const { return nans + infinities > 0; }
};

struct OutputValidation {
  std::string name;
  OutputDifference difference;
  NonFiniteCount reference_nonfinite, candidate_nonfinite;
  OutputScore score;  // Of kind kNone where there are no labels, or they are not for this output.
};

// What the distortion of all pictures makes of the scores, by output.
struct DistortedScores {
  Distortion distortion;
  std::vector<OutputScore> scores;
};

struct Validation {
  size_t num_runs = 0;           // How many batches were run.
  size_t num_batches = 0;        // How many there are.
  bool was_interrupted = false;  // Before the end: everything here is of the runs until then.
  std::vector<OutputValidation> outputs;
  std::vector<DistortedScores> distorted;
  // Of one run on the first batch; 0 when not measured.
  double reference_seconds = 0;
  double candidate_seconds = 0;
  PlanReport candidate_plan;  // Of its last run.
};

struct ValidationSettings {
  SessionOptions reference;
  SessionOptions candidate;
  int timed_runs = 0;  // How often each model runs, in turn, for the median time.
  std::vector<Distortion> distortions;
  uint64_t seed = 1;                                // Of the distortions.
  std::function<void(int64_t rows_done)> progress;  // Empty: nobody looks.
  std::function<bool()> is_interrupted;             // Empty: never.
};

// A model that runs: its session, and which tensors of a set it takes.
class RunningModel {
 public:
  // `inputs` are those of the reference, of which `graph` may lack some. Errors as of Session.
  static absl::StatusOr<RunningModel> Create(const Graph& graph, absl::Span<const Endpoint> inputs,
                                             absl::Span<const std::string> fetches, const SessionOptions& options);

  absl::StatusOr<std::vector<Tensor>> Run(const InputSet& set) const;
  const Session& session() const { return *session_; }

 private:
  std::unique_ptr<Session> session_;
  std::vector<Endpoint> inputs_;  // Those of the positions, in this graph.
  std::vector<size_t> positions_;
};

// Runs both graphs on every batch. The interface of `reference` must be declared; `candidate` has inputs and outputs of
// the same names, of which inputs may be missing. Nothing but sums is kept of a batch. `labels` may be null: else it
// has an answer for each row of the source. Errors as of Session and the source, with the model named; InvalidArgument
// for labels that fit no output.
absl::StatusOr<Validation> Validate(const Graph& reference, const Graph& candidate, BatchSource& source,
                                    const Labels* labels, const ValidationSettings& settings);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_

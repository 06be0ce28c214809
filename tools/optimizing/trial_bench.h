// Measures trials: runs pipelines and models in processes of their own, and keeps the results in the journal.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_TRIAL_BENCH_H_
#define PERMAFROST_TOOLS_OPTIMIZING_TRIAL_BENCH_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "runtime_check/checking/output_error.h"
#include "runtime_check/precision/precision_plan.h"
#include "runtime_check/session_options.h"
#include "tools/optimizing/isolated_runs.h"
#include "tools/optimizing/journal.h"
#include "tools/optimizing/search_inputs.h"
#include "tools/optimizing/trial.h"

namespace permafrost {

struct BenchSettings {
  SaveOptions save;        // How the model will be written, which determines its size.
  int passes_threads = 1;  // Threads of passes.
  SessionOptions session;  // Without a delegate and number of threads.
  IsolationLimits isolation;
  double timing_seconds = 20;  // Maximum duration of a contest.
  std::function<bool()> must_stop;
  std::function<void(const std::string& line)> note;  // Receives problems that do not end the search.
};

// The model of a search, and everything that is measured with it. Not thread-safe.
class TrialBench {
 public:
  // Runs the original model on all inputs with the built-in kernels. `original` has a declared interface; the objects
  // must outlive the bench. Errors are those of Session.
  static absl::StatusOr<std::unique_ptr<TrialBench>> Create(const Graph& original, const SearchInputs& inputs,
                                                            Journal& journal, FileSystem& files,
                                                            BenchSettings settings);

  // Returns the results of the requests, in their order. A trial that fails, crashes or hangs has TrialResult::failure.
  // Cancelled after an interruption, or when must_stop returned true.
  absl::StatusOr<std::vector<TrialResult>> Measure(const std::vector<TrialRequest>& requests);
  absl::StatusOr<TrialResult> Measure(const TrialRequest& request);

  // Measures the latency of the requests in turn, on the first input of the search.
  absl::StatusOr<std::vector<TimedTrial>> MeasureTimes(const std::vector<TrialRequest>& requests);

  // Plans a precision that needs a plan for the result of `transforms`, on the inputs of the search. The plan is used
  // by all trials with this delegate and precision: passes that only store weights in fewer bits keep the names of
  // nodes. Returns the reason if the precision does not run.
  absl::Status PlanPrecision(const std::string& transforms, const RunChoice& run);
  // Returns the plan of a precision, or null.
  std::shared_ptr<const PrecisionPlan> PlanOf(const RunChoice& run) const;

  // Keeps the result of `transforms`, with which all further pipelines begin, so that it is computed once.
  absl::Status SetBase(const std::string& transforms);

  // Chooses the codes of the weights of the result of `transforms` by the inputs of the search (weight_rounding.h), for
  // all codings of at most eight bits. Pipelines then read them as kCalibrationName. False if no weights can be so
  // chosen. Errors are those of Session; Cancelled as for Measure.
  absl::StatusOr<bool> Calibrate(const std::string& transforms);
  // Returns the text of the calibration; empty without one.
  const std::string& calibration() const { return calibration_; }

  // Returns the original graph after the passes.
  absl::StatusOr<std::unique_ptr<Graph>> Transform(const std::string& transforms) const;

  int num_measured() const { return num_measured_; }  // Trials that were not in the journal.

  // Every request with its result, in the order of the search.
  const std::vector<std::pair<TrialRequest, TrialResult>>& trials() const { return trials_; }

 private:
  TrialBench(const Graph& original, const SearchInputs& inputs, Journal& journal, FileSystem& files,
             BenchSettings settings)
      : original_(original), inputs_(inputs), journal_(journal), files_(files), settings_(std::move(settings)) {}

  const std::vector<LabelledSet>& Sets(TrialInputs inputs) const;
  const SampleOutputs& Expected(TrialInputs inputs) const;
  absl::StatusOr<SampleOutputs> RunOriginal(const std::vector<LabelledSet>& sets) const;
  absl::StatusOr<std::string> RunTrial(const TrialRequest& request) const;
  absl::StatusOr<std::string> RunContest(const std::vector<TrialRequest>& requests) const;
  absl::StatusOr<std::string> RunPlanning(const std::string& transforms, const RunChoice& run) const;
  absl::StatusOr<SessionOptions> OptionsOf(const RunChoice& run) const;
  // Returns the record of the journal with that key, or runs the function and adds its result, a JSON text.
  absl::StatusOr<std::string> RunJournaled(const std::string& key, const IsolatedFunction& function,
                                           double timeout_seconds);
  void Keep(const std::string& key, const std::string& json);

  const Graph& original_;
  const SearchInputs& inputs_;
  Journal& journal_;
  FileSystem& files_;
  const BenchSettings settings_;
  std::vector<LabelledSet> few_;
  std::string base_;  // The pipeline of base_graph_.
  std::unique_ptr<Graph> base_graph_;
  std::map<TrialInputs, SampleOutputs> expected_;
  std::map<std::string, std::shared_ptr<const PrecisionPlan>> plans_;  // By delegate and precision.
  std::vector<std::pair<TrialRequest, TrialResult>> trials_;
  std::map<std::string, size_t> by_key_;  // Index in trials_.
  int num_measured_ = 0;
  bool journal_failed_ = false;
  std::string calibration_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_TRIAL_BENCH_H_

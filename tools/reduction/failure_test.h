// Tests whether a model shows a failure: of a command, or of a run compared with the built-in kernels.
#ifndef PERMAFROST_TOOLS_REDUCTION_FAILURE_TEST_H_
#define PERMAFROST_TOOLS_REDUCTION_FAILURE_TEST_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/model/run_flags.h"
#include "tools/reduction/reducible_model.h"

namespace permafrost {

// Conditions that count as the failure.
struct FailureSettings {
  // A command line for /bin/sh, in which {} stands for the model's path and {inputs} for its inputs
  // ("name=file.npy,..."), as other tools take them. Empty: the model is run with `run` instead.
  std::string command;
  std::string text;  // The command's output must contain it, whatever the exit status. Empty: the exit status counts.
  // Largest error of an output of `run`, relative to its scale, that is no failure. Crashes, and errors of the run that
  // the built-in kernels do not have, are failures, too.
  double max_error = 0;
  RunFlags run;
  double trial_seconds = 20;
};

// Runs trials, each in a process of its own with a time limit. Not thread-safe.
class FailureTest {
 public:
  // Trials of commands write their model into a new folder below the folder for temporary files, which the destructor
  // removes. `files` must outlive the object.
  static absl::StatusOr<std::unique_ptr<FailureTest>> Create(FailureSettings settings, FileSystem& files);
  ~FailureTest();
  FailureTest(const FailureTest&) = delete;
  FailureTest& operator=(const FailureTest&) = delete;

  // Runs the whole model, and takes what it shows as the failure. Returns a line that describes it. Aborted if there is
  // no failure; other errors if it cannot be tested.
  absl::StatusOr<std::string> Establish(const ReducibleModel& model);
  // Returns whether a model shows the same failure: the same exit status, signal, kind of error, or an error beyond
  // max_error.
  bool IsShownBy(const ReducibleModel& model);

  // Returns whether trials need values of the inputs.
  bool NeedsInputs() const;
  // Computes tensors of a model with the built-in kernels, in a process of its own. Errors are those of Session, or say
  // how the process ended.
  absl::StatusOr<std::vector<Tensor>> Compute(const ReducibleModel& model,
                                              const std::vector<std::string>& fetches) const;

 private:
  FailureTest(FailureSettings settings, FileSystem& files) : settings_(std::move(settings)), files_(files) {}

  // Returns what a model shows, as a text in which everything that differs from failure to failure of one kind is left
  // out; an empty text if it shows none.
  absl::StatusOr<std::string> Outcome(const ReducibleModel& model) const;
  absl::StatusOr<std::string> OutcomeOfCommand(const ReducibleModel& model) const;
  absl::StatusOr<std::string> OutcomeOfRun(const ReducibleModel& model) const;

  const FailureSettings settings_;
  FileSystem& files_;
  std::string folder_;
  std::string failure_;
};

// Writes the inputs of a model as NPY files input_0.npy, ... in `folder`, removes those with higher numbers, and
// returns "name=file,..." for those that have values.
absl::StatusOr<std::string> WriteInputs(const ReducibleModel& model, const std::string& folder, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REDUCTION_FAILURE_TEST_H_

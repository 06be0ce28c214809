// The flags that choose who computes a model. Links the delegates, so it is for tools that let the user choose.
#ifndef PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_
#define PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/command_line/flags.h"
#include "tools/command_line/json.h"
#include "tools/model/weight_files.h"

namespace permafrost {

// What every tool that runs models lets the user choose.
struct RunFlags {
  std::string delegate = "reference";  // A name, or the path of a shared library.
  std::string precision;            // Empty: what the delegate does where nobody says; see SettleDelegate for others.
  std::string calibration = "mse";  // A RangeMethod.
  std::vector<std::string> calibration_inputs;  // See ReadCalibrationInputs.
  std::string precision_plan;                   // A file, or empty.
  std::string cache_dir;                        // A folder, or empty.
  std::vector<std::string> custom_ops;
  int32_t threads = 0;
  int32_t inter_op_threads = 1;
  std::string cpu_affinity;  // As ParseProcessors takes it; empty: all.
  bool explain = false;
};

// --delegate, --precision, --calibration, --calibration_inputs, --precision_plan, --cache_dir, --custom_ops, --threads,
// --inter_op_threads, --cpu_affinity, --explain.
void AddRunFlags(RunFlags* run, FlagTable* flags);

// The same run twice: by the built-in kernels, and as the flags say. Ops that only a library knows run in both.
struct RunOptions {
  SessionOptions reference;
  SessionOptions chosen;
};

// Loads what the flags name. InvalidArgument for an unknown delegate or precision (with the known ones), and numbers
// of threads that are negative or beyond ThreadPool::kMostThreads, for processors that this thread may not use, and for
// what --precision needs not; errors of LoadExternalDelegate and LoadCustomOps. `files` must outlive the result.
absl::StatusOr<RunOptions> MakeRunOptions(const RunFlags& run, FileSystem& files);

// A model that a tool is about to run.
struct ModelToRun {
  const Graph& graph;
  absl::Span<const Endpoint> inputs, outputs;
  std::string path;
  bool keeps_weights = true;  // False where the delegate will run other models too.
};

// What keeps the weights that a delegate has packed, for when the runs are done.
class KeptWeights {
 public:
  KeptWeights() = default;
  KeptWeights(std::shared_ptr<WeightCache> cache, std::string path)
      : cache_(std::move(cache)), path_(std::move(path)) {}

  // What was settled on.
  const std::string& precision() const { return precision_; }
  void set_precision(std::string precision) { precision_ = std::move(precision); }

  // Writes to --cache_dir what was packed, and says on the console what was wrong with what was there, and if it cannot
  // be written: the runs are as good without.
  void Save(FileSystem& files, Console& console) const;
  // For --explain: what came from where, in a line; nothing where nothing is kept.
  void Print(const Console& console) const;
  // The same as an object, or null.
  void Write(JsonWriter* json) const;

 private:
  std::shared_ptr<WeightCache> cache_;  // Null where nobody keeps anything.
  std::string path_;                    // Empty: what is packed is not written.
  std::string precision_;
};

// Makes the delegate for the model. With --precision=auto: gives `chosen` the fastest precision of the delegate that
// stays inside the budget on the first few samples, and says which on the console. With int8 or mixed: plans it with
// them. With --precision_plan, what was settled is read from the file, or written where there is none; a model that is
// packed for the precision has its plan with it. Weights that were packed before, in the model's package or in
// --cache_dir, are used where they fit. Errors as of ChoosePrecision, ParsePrecisionPlan and of files;
// FailedPrecondition where the precision does not run, or the file is for something else.
absl::StatusOr<KeptWeights> SettleDelegate(const RunFlags& run, const ModelToRun& model,
                                           absl::Span<const std::vector<Tensor>> samples, FileSystem& files,
                                           SessionOptions* chosen, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_

// optimize_model: finds the best model within a budget of accuracy, size and latency.
#ifndef PERMAFROST_TOOLS_OPTIMIZE_MODEL_H_
#define PERMAFROST_TOOLS_OPTIMIZE_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

struct OptimizeModelOptions {
  std::string in_model;
  std::string out_model;
  std::vector<std::string> inputs;  // In the format of SearchInputsRequest; empty: random.
  std::string labels;
  int32_t label_offset = 0;
  int32_t samples = 200;
  std::optional<std::string> input_layer, output_layer;  // Comma separated; absent: detected.
  // Budgets, in the formats of optimizing/budget.h; empty: no limit, or the default for the accuracy.
  std::string max_error, max_accuracy_drop, max_size, max_latency;
  std::string minimize = "latency";        // latency, size or memory.
  std::string time = "30m";                // A duration.
  std::string journal;                     // A file, or empty.
  std::optional<std::string> results;      // A file for all trials as JSON; empty: none; absent: beside out_model.
  std::optional<std::string> page;         // A file for the page; empty: none; absent: beside out_model.
  std::optional<std::string> certificate;  // A file for the certificate; empty: none; absent: in out_model.
  std::vector<std::string> delegates;      // Each a comma separated list; empty: all.
  std::vector<std::string> precisions;     // Each a comma separated list; empty: all.
  int32_t threads = 0;                     // 0: one per core.
  int32_t jobs = 1;
  std::string trial_time = "5m";  // A duration.
  uint64_t seed = 1;
  bool json = false;
  ImageFlags image;
  ReadFlags read;
  WriteFlags write;
};

// Searches, prints the result on console.out, and writes the model, its precision plan if it needs one, all trials and
// a page. Aborted, with nothing but trials and page written, if no model is within the budget. After Ctrl-C writes the
// best model so far; Cancelled if there is none.
absl::Status OptimizeModel(const OptimizeModelOptions& options, FileSystem& files, Console& console);

Tool OptimizeModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZE_MODEL_H_

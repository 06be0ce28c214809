// validate_model: measures the output differences between two models, and their accuracy.
#ifndef PERMAFROST_TOOLS_VALIDATE_MODEL_H_
#define PERMAFROST_TOOLS_VALIDATE_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/images/image.h"
#include "tools/model/model_flags.h"
#include "tools/model/run_flags.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

struct ValidateModelOptions {
  std::string reference;
  std::string candidate;
  std::vector<std::string> inputs;  // In the format of ReadInputSets, each a comma separated list; empty: random.
  std::optional<std::string> outputs;
  std::string images;  // A folder, or INPUT=FOLDER; replaces `inputs`.
  ImageFlags image;
  uint64_t max_image_pixels = static_cast<uint64_t>(ImageLimits().max_pixels);
  std::string labels;  // An NPY file, or for images a list.
  std::string class_names;
  int32_t label_offset = 0;
  bool confusion = false;
  bool per_class = false;
  std::string perturb;  // In the format of ParseDistortions.
  bool sqnr = false;
  std::string lineage;      // A file, for `sqnr`.
  std::string certificate;  // A file: repeats its proof with the candidate, instead of a comparison.
  int32_t batch = 0;        // Rows per batch; 0: the size fixed by the model, else 32.
  int32_t samples = 3;      // Number of random inputs.
  uint64_t seed = 1;
  RunFlags run;
  std::string simulate;  // "half", "bfloat16" or empty.
  int32_t runs = 0;
  std::optional<double> tolerance;
  std::optional<double> max_accuracy_drop;
  bool json = false;
  ReadFlags read;
};

// Prints the results. After Ctrl-C, prints the results so far and returns Cancelled. Aborted if `tolerance` or
// `max_accuracy_drop` is exceeded, or if outputs cannot be compared.
absl::Status ValidateModel(const ValidateModelOptions& options, FileSystem& files, Console& console);

Tool ValidateModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATE_MODEL_H_

// optimize_for_inference: removes what only training needs and folds what can be folded.
#ifndef PERMAFROST_TOOLS_OPTIMIZE_FOR_INFERENCE_H_
#define PERMAFROST_TOOLS_OPTIMIZE_FOR_INFERENCE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

// The original's options.
struct OptimizeForInferenceOptions {
  std::string input;
  std::string output;
  std::string input_names;   // Comma separated.
  std::string output_names;  // The same.
  bool frozen_graph = true;  // Write the binary form. What is read, the content tells.
  std::string placeholder_type_enum;
  bool toco_compatible = false;
  ReadFlags read;
};

// Optimises, verifies, reports on console.out and writes.
absl::Status OptimizeForInference(const OptimizeForInferenceOptions& options, FileSystem& files, Console& console);

// The transforms that do it. Errors as of StripCall.
absl::StatusOr<std::string> OptimizeForInferenceCalls(const std::string& input_names, const std::string& type_enums,
                                                      bool toco_compatible);

Tool OptimizeForInferenceTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZE_FOR_INFERENCE_H_

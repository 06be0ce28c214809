// optimize_for_inference: removes training nodes and folds constants and batch norms.
#ifndef PERMAFROST_TOOLS_OPTIMIZE_FOR_INFERENCE_H_
#define PERMAFROST_TOOLS_OPTIMIZE_FOR_INFERENCE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"
#include "tools/model/time_limit.h"

namespace permafrost {

// The options of TensorFlow's tool.
struct OptimizeForInferenceOptions {
  std::string input;
  std::string output;
  std::string input_names;   // Comma separated.
  std::string output_names;  // Comma separated.
  bool frozen_graph = true;  // Write the binary form. The input format is detected from the content.
  std::string placeholder_type_enum;
  bool toco_compatible = false;
  double max_time = kDefaultMaxTime;  // As in TransformGraphOptions.
  ReadFlags read;
};

// Optimises, verifies, reports on console.out and writes.
absl::Status OptimizeForInference(const OptimizeForInferenceOptions& options, FileSystem& files, Console& console);

// Returns the transforms of the tool. Errors are those of StripCall.
absl::StatusOr<std::string> OptimizeForInferenceCalls(const std::string& input_names, const std::string& type_enums,
                                                      bool toco_compatible);

Tool OptimizeForInferenceTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZE_FOR_INFERENCE_H_

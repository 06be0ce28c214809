// report_model: one page that shows a model, or several variants of one side by side.
#ifndef PERMAFROST_TOOLS_REPORT_MODEL_H_
#define PERMAFROST_TOOLS_REPORT_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"
#include "tools/model/run_flags.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

struct ReportModelOptions {
  std::vector<std::string> in_graph;  // Each a comma separated list; the first is what the others are compared with.
  std::string out;                    // Empty: standard output.
  std::string format = "html";
  std::string title;
  std::vector<std::string> names;  // What the models are called, each a comma separated list; empty: as their files.
  std::optional<std::string> input_layer, output_layer, input_layer_shape;
  std::vector<std::string> inputs;  // As ReadInputSets takes them, each a comma separated list; empty: random.
  std::string labels;               // An NPY file of integers.
  int32_t samples = 3;              // How many random inputs.
  uint64_t seed = 1;
  bool run = true;       // Measure times and memory.
  bool layers = true;    // Measure the errors inside of variants.
  double max_time = 10;  // Seconds that the measurement may take.
  RunFlags run_flags;
  ImageFlags image;  // Of pictures to calibrate with.
  ReadFlags read;
};

// Writes the report. What of it cannot be measured is left out, with a note in the report. Cancelled, with nothing
// written, after Ctrl-C.
absl::Status ReportModel(const ReportModelOptions& options, FileSystem& files, Console& console);

Tool ReportModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_MODEL_H_

// report_model: writes one page about a model, or about several variants of one side by side.
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
  std::vector<std::string> in_graph;  // Each a comma separated list; the first is the reference.
  std::string out;                    // Empty: standard output.
  std::string format;                 // "html", "json", "csv", "md"; empty: by the extension of `out`, or else html.
  std::string title;
  std::vector<std::string> names;  // Names of the models, each a comma separated list; empty: file names.
  std::optional<std::string> input_layer, output_layer, input_layer_shape;
  std::vector<std::string> inputs;  // In the format of ReadInputSets, each a comma separated list; empty: random.
  std::string labels;               // An NPY file of integers.
  int32_t samples = 3;              // Number of random inputs.
  uint64_t seed = 1;
  bool run = true;       // Measure times and memory.
  bool layers = true;    // Measure errors inside variants.
  double max_time = 10;  // Maximum seconds of the measurement.
  RunFlags run_flags;
  ImageFlags image;  // Preprocessing of calibration pictures.
  ReadFlags read;
};

// Writes the report. Parts that cannot be measured are omitted, with a note in the report. Cancelled, with nothing
// written, after Ctrl-C.
absl::Status ReportModel(const ReportModelOptions& options, FileSystem& files, Console& console);

Tool ReportModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_MODEL_H_

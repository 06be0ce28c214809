// convert_model: reads a model of any format and writes it in another.
#ifndef PERMAFROST_TOOLS_CONVERT_MODEL_H_
#define PERMAFROST_TOOLS_CONVERT_MODEL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"
#include "tools/transform/tflite_output.h"

namespace permafrost {

struct ConvertModelOptions {
  std::string in;
  std::string out;
  std::string to;       // A name of ModelFormats(); empty: as the extension of `out` says.
  bool defuse = false;  // Run defuse_ops first.
  bool json = false;
  std::optional<std::string> inputs, outputs;  // The interface of a TensorFlow Lite model; detected if absent.
  TfliteFlags tflite;
  std::string metadata;        // "labels.txt,mean,std"; empty: none are added.
  std::string extract_labels;  // File to write the labels of a TensorFlow Lite model to; `out` may be empty then.
  ReadFlags read;
  WriteFlags write;
};

// Converts the model. Reports on console.out the file written and the inputs and outputs that the model declares.
// Writes nothing on an error.
absl::Status ConvertModel(const ConvertModelOptions& options, FileSystem& files, Console& console);

Tool ConvertModelTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_CONVERT_MODEL_H_

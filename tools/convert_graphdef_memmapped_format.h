// convert_graphdef_memmapped_format: converts a frozen graph into a package whose weights are memory-mapped, and back.
#ifndef PERMAFROST_TOOLS_CONVERT_GRAPHDEF_MEMMAPPED_FORMAT_H_
#define PERMAFROST_TOOLS_CONVERT_GRAPHDEF_MEMMAPPED_FORMAT_H_

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

struct ConvertGraphdefMemmappedFormatOptions {
  std::string in_graph;
  std::string out_graph;
  int32_t min_conversion_tensor_size = 10000;  // Bytes.
  bool page_aligned = false;
  bool dedupe = false;
  bool include_quantized = false;
  std::vector<std::string> pack_for;            // See ParsePackRequest.
  std::vector<std::string> inputs;              // Files; see ReadInputSets.
  std::vector<std::string> calibration_inputs;  // See ReadCalibrationInputs.
  ImageFlags image;                             // Preprocessing of pictures in calibration_inputs.
  std::optional<std::string> outputs;           // Comma separated names.
  bool unpack = false;
  bool verify = false;
  bool dry_run = false;
  bool json = false;
  ReadFlags read;
  WriteFlags write;
};

// Writes the package, or with `unpack` the GraphDef, and reports how the constants were stored. DataLoss if the written
// file does not read back as expected.
absl::Status ConvertGraphdefMemmappedFormat(const ConvertGraphdefMemmappedFormatOptions& options, FileSystem& files,
                                            Console& console);

Tool ConvertGraphdefMemmappedFormatTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_CONVERT_GRAPHDEF_MEMMAPPED_FORMAT_H_

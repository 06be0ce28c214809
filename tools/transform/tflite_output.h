// Encodes a model as TensorFlow Lite, and proves the file: it is read back and compared with the original.
#ifndef PERMAFROST_TOOLS_TRANSFORM_TFLITE_OUTPUT_H_
#define PERMAFROST_TOOLS_TRANSFORM_TFLITE_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "tools/command_line/flags.h"
#include "tools/model/time_limit.h"
#include "tools/transform/tflite_quantization.h"
#include "tools/transform/verification.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

// Flags of tools that write TensorFlow Lite models.
struct TfliteFlags {
  std::string verify = "required";  // "required", "auto" or "off".
  std::vector<std::string> verify_inputs;
  std::string quantize = "none";  // One of TfliteQuantizeNames().
  bool allow_flex = false;        // Write nodes without a form as TensorFlow's ops.
  // Default: 1e-4, the accuracy that docs/formats/tflite.md promises for float models. Reduced precision is then
  // limited by Verdict::RuinedOutputs alone.
  std::optional<double> tolerance;
  uint64_t seed = 1;
  double max_time = kDefaultMaxTime;  // For the runs of the verification and for folding constants, each.
  // The rest is for quantised models.
  std::vector<std::string> calibration_inputs;  // As ReadCalibrationInputs takes them. Empty: seeded inputs.
  ImageFlags image;
  std::string io_type = "float";                                          // "float", "int8" or "uint8".
  std::vector<std::string> keep_float;                                    // Lists of nodes.
  std::vector<std::string> tensor_ranges;                                 // Lists of "TENSOR=LOW:HIGH".
  std::string ranges = "auto", rounding = "auto", equalization = "auto";  // As of TfliteQuantization.
  double min_sqnr_db = TfliteQuantization().min_sqnr_db;
  std::string write_calibration;  // A file for the ranges. Empty: none.
};

// Adds the flags of quantisation: --quantize, --io_type, --calibration_inputs, --keep_float, --tensor_ranges, --ranges,
// --rounding, --equalize, --min_sqnr, --write_calibration.
void AddTfliteQuantizationFlags(TfliteFlags* tflite, FlagTable* flags);

// Returns "none", "float16", "dynamic", "int8", "int16x8" and "int4".
std::vector<std::string> TfliteQuantizeNames();

// The error of a layer by itself.
struct LayerError {
  std::string layer;
  double sqnr_db = 0;
};

// A model that was proved, or that was not to be.
struct TfliteOutput {
  std::string bytes;
  Verdict verdict;
  // Set for quantised models:
  std::vector<std::string> kept_float;  // Operators that were left in float for the sake of the outputs.
  std::vector<LayerError> layers;       // The layers with the largest errors, the largest first.
  std::vector<std::string> notes;       // Lines for the user.
};

// True if the path has the extension of the format.
bool IsTflitePath(absl::string_view path);

// Runs the preset `prepare_for_tflite` on a copy of `graph`, whose interface must be declared, and encodes the result.
// Reads the bytes back, runs them and `graph` on the same inputs, and compares. Errors: those of the encoding; Aborted
// if an output differs by more than the tolerance, or is ruined by reduced precision; FailedPrecondition if the check
// is required and `graph` cannot be run.
absl::StatusOr<TfliteOutput> EncodeTflite(const Graph& graph, const TfliteFlags& flags, int num_threads,
                                          FileSystem& files);

// Returns lines about a quantised model: the errors of outputs and layers, and what stayed float. Empty for others.
std::string QuantizationText(const TfliteOutput& output);

// Returns "outputs differ by at most 2.3e-07 of their scale for 2 inputs", or the reason why they were not compared.
std::string ProofText(const Verdict& verdict);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_TFLITE_OUTPUT_H_

// Quantises a model for TensorFlow Lite: finds ranges, chooses among them by the measured error, and keeps the layers
// in float that would ruin an output.
#ifndef PERMAFROST_TOOLS_TRANSFORM_TFLITE_QUANTIZATION_H_
#define PERMAFROST_TOOLS_TRANSFORM_TFLITE_QUANTIZATION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "runtime_check/session_options.h"
#include "tools/model/model_inputs.h"
#include "tools/transform/verification.h"

namespace permafrost {

struct TfliteQuantization {
  std::string mode = "int8";  // "int8", "int16x8", "dynamic" or "int4".
  std::string io_type = "float";
  std::vector<std::string> keep_float;     // Nodes.
  std::vector<std::string> tensor_ranges;  // "TENSOR=LOW:HIGH", instead of the observed range.
  // Layers stay float until the SQNR of every output is at least this, if that is possible. Negative: no layer does.
  // The default is that below which an output counts as ruined (QualityBounds).
  double min_sqnr_db = 15;
  // "auto" chooses by measurement. Other values: one of RangeMethodNames(), one of RoundingMethodNames() or "none", and
  // one of EqualizationNames().
  std::string ranges = "auto", rounding = "auto", equalization = "auto";
  int num_threads = 1;
};

// "none", "weights" and "activations": the parameter `by` of equalize_channels.
std::vector<std::string> EqualizationNames();

struct QuantizedModel {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Graph> equalized;     // The float graph that was quantised, if its channels were equalised.
  std::string equalization;             // The pass that equalised them, with parameters; or empty.
  std::vector<std::string> kept_float;  // Operators that the choice left in float, by their last nodes.
  std::string ranges;                   // The calibration file that quantize_for_tflite read.
  std::string range_method;             // One of RangeMethodNames(); empty for modes without ranges.
  std::string rounding;                 // Of weights: one of RoundingMethodNames(), or "none".
  std::vector<std::string> notes;
};

// Quantises a graph that prepare_for_tflite made. `inputs` are the calibration inputs, `verifier` holds the outputs of
// the original graph on them. Errors are those of the passes and of Session; InvalidArgument for a malformed range.
absl::StatusOr<QuantizedModel> QuantizeForTflite(const Graph& prepared, const std::vector<InputSet>& inputs,
                                                 const Verifier& verifier, const SessionOptions& options,
                                                 const TfliteQuantization& quantization);

// Returns a copy of `read`, a written model with inputs or outputs of codes, that takes and returns floats like the
// original: the codes have the scales that `written`, the graph of the same interface that was encoded, records.
absl::StatusOr<std::unique_ptr<Graph>> WithFloatInterface(const Graph& read, const Graph& written);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_TFLITE_QUANTIZATION_H_

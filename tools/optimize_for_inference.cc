// Runs the passes of TensorFlow's optimize_for_inference.
#include "tools/optimize_for_inference.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/strip_unused.h"
#include "tools/transform_graph.h"

namespace permafrost {
namespace {

void DefineFlags(OptimizeForInferenceOptions* options, FlagTable* flags) {
  flags->Add("input", &options->input, "FILE", "Frozen graph to read. '-' is standard input.");
  flags->Add("output", &options->output, "FILE", "File to write, atomically. '-' is standard output.");
  flags->Add("input_names", &options->input_names, "NAMES", "Inputs, separated by commas. Each becomes a placeholder.");
  flags->Add("output_names", &options->output_names, "NAMES",
             "Outputs, separated by commas. Nodes that they do not need are removed.");
  flags->Add("frozen_graph", &options->frozen_graph, "Write binary instead of protobuf's text format.");
  flags->Add("placeholder_type_enum", &options->placeholder_type_enum, "N,...",
             "Types of new placeholders, as numbers of TensorFlow's DataType: one, or one per input. Default: the "
             "types of the replaced nodes.");
  flags->Add("toco_compatible", &options->toco_compatible,
             "Use only ops that TensorFlow Lite's converter supports: do not fuse Pad and Resize.");
  flags->Add("max_time", &options->max_time, "SECONDS",
             "Maximum time of the runs that verify, and of folding constants.");
  AddReadFlags(&options->read, flags);
  flags->MarkCommon(
      {"input", "output", "input_names", "output_names", "frozen_graph", "placeholder_type_enum", "toco_compatible"});
  flags->AcceptAsArguments({"input", "output"});
  flags->MarkOutputs({"output"});
}

}  // namespace

absl::StatusOr<std::string> OptimizeForInferenceCalls(const std::string& input_names, const std::string& type_enums,
                                                      bool toco_compatible) {
  PF_ASSIGN_OR_RETURN(const std::string strip, StripCall(input_names, type_enums));
  return absl::StrCat(strip, " remove_nodes(op=CheckNumerics, op=Identity) fold_old_batch_norms",
                      toco_compatible ? "" : " fuse_resize_pad_and_conv fuse_resize_and_conv fuse_pad_and_conv");
}

absl::Status OptimizeForInference(const OptimizeForInferenceOptions& options, FileSystem& files, Console& console) {
  if (options.input.empty()) return absl::InvalidArgumentError("--input is missing");
  if (options.output.empty()) return absl::InvalidArgumentError("--output is missing");
  if (options.output_names.empty()) return absl::InvalidArgumentError("--output_names is missing");
  TransformGraphOptions transform;
  transform.in_graph = options.input;
  transform.out_graph = options.output;
  transform.inputs = options.input_names;
  transform.outputs = options.output_names;
  PF_ASSIGN_OR_RETURN(
      transform.transforms,
      OptimizeForInferenceCalls(options.input_names, options.placeholder_type_enum, options.toco_compatible));
  transform.output_as_text = !options.frozen_graph;
  transform.max_time = options.max_time;
  transform.read = options.read;
  return TransformGraph(transform, files, console);
}

Tool OptimizeForInferenceTool() {
  return DefineTool<OptimizeForInferenceOptions>(
      "optimize_for_inference", "removes nodes that only training needs, and folds batch norms",
      {{"Optimise a trained classifier.",
        "--input=frozen.pb --output=small.pb --input_names=image --output_names=softmax"}},
      &DefineFlags, &OptimizeForInference);
}

}  // namespace permafrost

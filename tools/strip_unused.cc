// Runs strip_unused_nodes with the flags of TensorFlow's tool.
#include "tools/strip_unused.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/dtype.h"
#include "tools/transform_graph.h"

namespace permafrost {
namespace {

void DefineFlags(StripUnusedOptions* options, FlagTable* flags) {
  flags->Add("input_graph", &options->input_graph, "FILE", "Frozen graph to read. '-' is standard input.");
  flags->Add("output_graph", &options->output_graph, "FILE", "File to write, atomically. '-' is standard output.");
  flags->Add("input_node_names", &options->input_node_names, "NAMES",
             "Inputs, separated by commas. Each becomes a placeholder.");
  flags->Add("output_node_names", &options->output_node_names, "NAMES",
             "Outputs, separated by commas. Nodes that they do not need are removed.");
  flags->Add("placeholder_type_enum", &options->placeholder_type_enum, "N,...",
             "Types of new placeholders, as numbers of TensorFlow's DataType: one, or one per input. Default: the "
             "types of the replaced nodes.");
  flags->Add("output_binary", &options->output_binary, "Write binary instead of protobuf's text format.");
  flags->Add("input_binary", &options->input_binary, "No effect: the content shows whether a file is binary or text.");
  flags->Add("max_time", &options->max_time, "SECONDS",
             "Maximum time of the runs that verify, and of folding constants.");
  AddReadFlags(&options->read, flags);
  flags->MarkCommon({"input_graph", "output_graph", "input_node_names", "output_node_names", "placeholder_type_enum",
                     "output_binary"});
  flags->AcceptAsArguments({"input_graph", "output_graph"});
  flags->MarkOutputs({"output_graph"});
}

absl::StatusOr<DType> TypeOf(const std::string& text) {
  int32_t number = 0;
  const bool is_number = absl::SimpleAtoi(text, &number);
  const auto dtype = static_cast<DType>(number);
  if (is_number && number > 0 && ParseDType(DTypeName(dtype)).ok()) return dtype;
  return absl::InvalidArgumentError(
      absl::StrCat("--placeholder_type_enum: '", text, "' is no type, expected a number of DataType (1 is float)"));
}

}  // namespace

absl::StatusOr<std::string> StripCall(const std::string& input_names, const std::string& type_enums) {
  const std::vector<std::string> names = SplitList(input_names), enums = SplitList(type_enums);
  if (enums.empty()) return "strip_unused_nodes";
  if (enums.size() == 1) {
    PF_ASSIGN_OR_RETURN(const DType type, TypeOf(enums[0]));
    return absl::StrCat("strip_unused_nodes(type=", DTypeName(type), ")");
  }
  if (enums.size() != names.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--placeholder_type_enum has ", enums.size(),
                                                   " types, expected one, or one for each of ", names.size(),
                                                   " inputs"));
  }
  std::string call = "strip_unused_nodes(";
  for (size_t i = 0; i < names.size(); ++i) {
    PF_ASSIGN_OR_RETURN(const DType type, TypeOf(enums[i]));
    absl::StrAppend(&call, i == 0 ? "" : ", ", "name=\"", names[i], "\", type_for_name=", DTypeName(type),
                    ", shape_for_name=unknown");
  }
  return call + ")";
}

absl::Status StripUnused(const StripUnusedOptions& options, FileSystem& files, Console& console) {
  if (options.input_graph.empty()) return absl::InvalidArgumentError("--input_graph is missing");
  if (options.output_graph.empty()) return absl::InvalidArgumentError("--output_graph is missing");
  if (options.output_node_names.empty()) return absl::InvalidArgumentError("--output_node_names is missing");
  TransformGraphOptions transform;
  transform.in_graph = options.input_graph;
  transform.out_graph = options.output_graph;
  transform.inputs = options.input_node_names;
  transform.outputs = options.output_node_names;
  PF_ASSIGN_OR_RETURN(transform.transforms, StripCall(options.input_node_names, options.placeholder_type_enum));
  transform.output_as_text = !options.output_binary;
  transform.max_time = options.max_time;
  transform.read = options.read;
  return TransformGraph(transform, files, console);
}

Tool StripUnusedTool() {
  return DefineTool<StripUnusedOptions>(
      "strip_unused", "removes the nodes of a frozen graph that its outputs do not need",
      {{"Keep the nodes between a decoded image and the probabilities.",
        "--input_graph=model.pb --output_graph=small.pb --input_node_names=image --output_node_names=softmax"}},
      &DefineFlags, &StripUnused);
}

}  // namespace permafrost

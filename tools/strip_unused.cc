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
  flags->Add("input_graph", &options->input_graph, "FILE", "The frozen graph, binary or text.");
  flags->Add("output_graph", &options->output_graph, "FILE", "Where to write the result.");
  flags->Add("input_node_names", &options->input_node_names, "NAMES",
             "The inputs, separated by commas: each becomes a placeholder.");
  flags->Add("output_node_names", &options->output_node_names, "NAMES",
             "The outputs, separated by commas: what they do not need goes.");
  flags->Add("placeholder_type_enum", &options->placeholder_type_enum, "N,...",
             "The types of new placeholders, as numbers of TensorFlow's DataType: one for all inputs or one for each. "
             "Left out: the types of what they replace.");
  flags->Add("output_binary", &options->output_binary, "Write the binary form, not text.");
  flags->Add("input_binary", &options->input_binary, "Has no effect: the content tells binary from text.");
  AddReadFlags(&options->read, flags);
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
  transform.read = options.read;
  return TransformGraph(transform, files, console);
}

Tool StripUnusedTool() {
  return DefineTool<StripUnusedOptions>(
      "strip_unused", "keeps what the outputs of a frozen graph need of its inputs",
      {{"From a decoded image to the answer.",
        "--input_graph=model.pb --output_graph=small.pb --input_node_names=image --output_node_names=softmax"}},
      &DefineFlags, &StripUnused);
}

}  // namespace permafrost

// strip_unused: reduces a frozen graph to the nodes between its inputs and outputs.
#ifndef PERMAFROST_TOOLS_STRIP_UNUSED_H_
#define PERMAFROST_TOOLS_STRIP_UNUSED_H_

#include <optional>
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
struct StripUnusedOptions {
  std::string input_graph;
  bool input_binary = false;  // Ignored: the format is detected from the content.
  std::string output_graph;
  bool output_binary = true;
  std::string input_node_names;   // Comma separated.
  std::string output_node_names;  // Comma separated.
  std::string placeholder_type_enum;
  double max_time = kDefaultMaxTime;  // As in TransformGraphOptions.
  ReadFlags read;
};

// Strips the graph, reports on console.out and writes it.
absl::Status StripUnused(const StripUnusedOptions& options, FileSystem& files, Console& console);

// Returns the call of strip_unused_nodes that gives new placeholders these types: numbers of TensorFlow's DataType, one
// for all inputs or one for each, separated by commas. If empty, the types are inferred. InvalidArgument for an invalid
// number, and for a wrong number of types.
absl::StatusOr<std::string> StripCall(const std::string& input_names, const std::string& type_enums);

Tool StripUnusedTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_STRIP_UNUSED_H_

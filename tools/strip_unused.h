// strip_unused: cuts a frozen graph down to what its outputs need of its inputs.
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

namespace permafrost {

// The original's options.
struct StripUnusedOptions {
  std::string input_graph;
  bool input_binary = false;  // The content tells.
  std::string output_graph;
  bool output_binary = true;
  std::string input_node_names;   // Comma separated.
  std::string output_node_names;  // The same.
  std::string placeholder_type_enum;
  ReadFlags read;
};

// Strips, reports on console.out and writes.
absl::Status StripUnused(const StripUnusedOptions& options, FileSystem& files, Console& console);

// The call of strip_unused_nodes that gives new placeholders these types: numbers of TensorFlow's DataType, one for all
// inputs or one for each, separated by commas; empty leaves the types to be inferred. InvalidArgument for numbers that
// are no types, and for another number of them than of inputs.
absl::StatusOr<std::string> StripCall(const std::string& input_names, const std::string& type_enums);

Tool StripUnusedTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_STRIP_UNUSED_H_

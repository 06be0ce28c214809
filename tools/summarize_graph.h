// summarize_graph: summarises the contents of a frozen graph.
#ifndef PERMAFROST_TOOLS_SUMMARIZE_GRAPH_H_
#define PERMAFROST_TOOLS_SUMMARIZE_GRAPH_H_

#include <string>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

struct SummarizeGraphOptions {
  std::string in_graph;
  bool print_structure = false;
  bool compressed_sizes = false;
  bool effects = false;
  std::string forbid;     // Names of effects, separated by commas; implies `effects`.
  std::string allow_ops;  // A file or a list; implies `effects`, and other ops are forbidden.
  std::string target;     // Name of an accelerator, or a file that describes one.
  bool json = false;
  ReadFlags read;
};

// Prints the lines of TensorFlow's tool in its order, except that a line about devices ends with a line feed. After a
// blank line, prints additional facts. With `json`, prints one object (docs/guide/summarize_graph.md). With `effects`,
// prints what running the graph can do instead, with `target` what an accelerator would leave to the CPU; Aborted if
// the graph has a forbidden effect.
absl::Status SummarizeGraph(const SummarizeGraphOptions& options, FileSystem& files, Console& console);

Tool SummarizeGraphTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARIZE_GRAPH_H_

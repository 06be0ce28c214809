// transform_graph: runs passes over a frozen graph, proves that it still answers the same, and writes it.
#ifndef PERMAFROST_TOOLS_TRANSFORM_GRAPH_H_
#define PERMAFROST_TOOLS_TRANSFORM_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

struct TransformGraphOptions {
  std::string in_graph;
  std::string out_graph;
  std::optional<std::string> inputs;   // Comma separated; absent: found.
  std::optional<std::string> outputs;  // The same.
  std::string transforms;
  bool output_as_text = false;
  bool dry_run = false;                    // Everything but the writing.
  bool explain = false;                    // Say where a pass almost matched.
  bool bisect = false;                     // Find the rewrite that breaks the numbers, and write nothing.
  std::string lineage;                     // Write there which nodes each node of the result comes from.
  std::string dump_dir;                    // Write the graph after each pass there, as text.
  std::string verify = "auto";             // auto, off, each or required.
  std::vector<std::string> verify_inputs;  // As ReadInputSets takes them, each a comma separated list.
  std::optional<double> tolerance;         // Instead of what the passes declare.
  uint64_t seed = 1;
  int32_t threads = 0;  // 0: as many as there are cores.
  bool json = false;
  ReadFlags read;
  WriteFlags write;
  bool list_passes = false;
  std::string describe_pass;
};

// Reads, runs the passes, verifies, reports on console.out and writes. Aborted when the outputs differ by more than the
// passes declare or `tolerance` allows; then, and on every error, nothing is written.
absl::Status TransformGraph(const TransformGraphOptions& options, FileSystem& files, Console& console);

Tool TransformGraphTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_GRAPH_H_

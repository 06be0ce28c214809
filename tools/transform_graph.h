// transform_graph: runs passes over a frozen graph, verifies the outputs, and writes the result.
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
#include "tools/model/time_limit.h"

namespace permafrost {

struct TransformGraphOptions {
  std::string in_graph;
  std::string out_graph;
  std::optional<std::string> inputs;   // Comma separated; absent: detected.
  std::optional<std::string> outputs;  // Comma separated; absent: detected.
  std::string transforms;
  bool output_as_text = false;
  bool dry_run = false;                    // Run everything except writing the result.
  bool explain = false;                    // Report near misses.
  bool bisect = false;                     // Find the rewrite that makes outputs wrong, and write nothing.
  std::string lineage;                     // Path of the file for the lineage of each node.
  std::string write_calibration;           // Path of the file for what passes have found by runs on inputs.
  std::string dump_dir;                    // Folder for the graph after each pass, as text.
  std::string verify = "auto";             // auto, off, each or required.
  std::vector<std::string> verify_inputs;  // In the format of ReadInputSets, each a comma separated list.
  std::optional<double> tolerance;         // Replaces the tolerance that the passes declare.
  uint64_t seed = 1;
  double max_time = kDefaultMaxTime;  // Seconds, for the runs of the verification and for folding constants, each.
  int32_t threads = 0;                // 0: the number of cores.
  bool json = false;
  ReadFlags read;
  WriteFlags write;
  bool list_passes = false;
  std::string describe_pass;
};

// Reads the graph, runs the passes, verifies, reports on console.out and writes the result. Aborted if the outputs
// differ by more than the passes declare or `tolerance` allows. Writes nothing in that case, nor on any other error.
absl::Status TransformGraph(const TransformGraphOptions& options, FileSystem& files, Console& console);

Tool TransformGraphTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_GRAPH_H_

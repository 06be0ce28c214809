// freeze_graph: converts a graph and the values of its variables into one file without variables.
#ifndef PERMAFROST_TOOLS_FREEZE_GRAPH_H_
#define PERMAFROST_TOOLS_FREEZE_GRAPH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"
#include "tools/model/time_limit.h"

namespace permafrost {

// The options of TensorFlow's freeze_graph, then the additional ones.
struct FreezeGraphOptions {
  std::string input_graph;
  std::string input_saver;
  bool input_binary = false;  // Ignored: the format is detected from the content.
  std::string input_checkpoint;
  int32_t checkpoint_version = 2;  // Ignored: the format is detected from the content.
  std::string output_graph;
  std::string output_node_names;  // Comma separated.
  std::string restore_op_name = "save/restore_all";
  std::string filename_tensor_name = "save/Const:0";  // Unused, as in TensorFlow.
  bool clear_devices = true;
  std::string initializer_nodes;         // Comma separated.
  std::string variable_names_whitelist;  // Comma separated.
  std::string variable_names_blacklist;  // Comma separated.
  std::string input_meta_graph;
  std::string input_saved_model_dir;

  ReadFlags read;  // Includes the tags and the signature of a SavedModel.
  bool moving_averages = false;
  std::string moving_average_suffix = "/ExponentialMovingAverage";
  bool inline_functions = true;
  bool drop_assignments = false;
  std::string output_format = "pb";
  WriteFlags write;
  double max_time = kDefaultMaxTime;  // Seconds, for computing initial values of variables.
  bool dry_run = false;
  bool json = false;
};

// Reads and freezes the graph, reports on console.out and writes the frozen graph.
absl::Status FreezeGraph(const FreezeGraphOptions& options, FileSystem& files, Console& console);

Tool FreezeGraphTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_FREEZE_GRAPH_H_

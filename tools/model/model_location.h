// Determines the model that a path belongs to: a part of a SavedModel or of a checkpoint stands for the whole.
#ifndef PERMAFROST_TOOLS_MODEL_MODEL_LOCATION_H_
#define PERMAFROST_TOOLS_MODEL_MODEL_LOCATION_H_

#include <string>

#include "absl/status/status.h"
#include "io/file_system.h"

namespace permafrost {

// A SavedModel, or a checkpoint with or without a MetaGraph, or neither for a path that is a model by itself.
struct ModelLocation {
  std::string saved_model;             // A folder.
  std::string meta_graph, checkpoint;  // A file, and the prefix of the checkpoint's files.

  bool is_whole() const { return saved_model.empty() && checkpoint.empty(); }
  // A checkpoint has the values of variables; the graph is in other files.
  bool has_no_graph() const { return !checkpoint.empty() && meta_graph.empty(); }
};

// Returns the location for the folder of a SavedModel, for one of its files or subfolders (saved_model.pb, variables/,
// variables/variables.index), and for the prefix, a file or the folder of a checkpoint of either version, with its
// MetaGraph if that is beside it (model.ckpt.meta). A frozen graph named saved_model.pb is told apart by its content.
// Does not read whole files.
ModelLocation LocateModel(FileSystem& files, const std::string& path);

// Returns the error for a checkpoint without a graph where a model is expected, with the command that combines both.
absl::Status NoGraphError(const std::string& path, const ModelLocation& location);

// Returns the prefix of a checkpoint from the path of one of its files ("model.ckpt.index", "model.ckpt.meta",
// "model.ckpt.data-00000-of-00001"), or the path itself if it has no such ending.
std::string CheckpointPrefix(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_MODEL_LOCATION_H_

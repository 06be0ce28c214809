// Opens models that have variables, whatever they were saved as, as frozen graphs.
#ifndef PERMAFROST_TOOLS_MODEL_FROZEN_MODEL_H_
#define PERMAFROST_TOOLS_MODEL_FROZEN_MODEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "io/formats/saved_model.h"
#include "io/model_format.h"
#include "transforms/freeze/freeze.h"

namespace permafrost {

// What to freeze. A SavedModel, or else a MetaGraph, or else a graph, the latter two with a checkpoint.
struct FrozenModelRequest {
  std::string saved_model;
  std::string meta_graph;
  std::string graph;
  std::string checkpoint;         // Of a SavedModel: instead of its own.
  std::string saver;              // A SaverDef file.
  std::string restore_op;         // The node that restores variables, where nothing else names it.
  std::vector<std::string> tags;  // Of the SavedModel; empty: the only meta graph.
  std::string signature;          // Empty: "serving_default", or the only one.
  // Nodes, or keys of the signature. If empty, the outputs are those of the signature, and the placeholders and outputs
  // of the frozen graph are named by its keys.
  std::vector<std::string> outputs;
  FreezeOptions options;  // Naming is filled in, save for the suffix of averages.
  OpenOptions open;
};

struct FrozenModel {
  std::unique_ptr<Graph> graph;  // With a declared interface.
  FreezeReport report;
  std::optional<Signature> signature;  // That the interface is from, with the names of the frozen graph.
};

// Errors name the file, or say which flag is missing. FailedPrecondition for a graph without variables beside a
// checkpoint: it is frozen already.
absl::StatusOr<FrozenModel> OpenFrozenModel(FileSystem& files, const FrozenModelRequest& request);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_FROZEN_MODEL_H_

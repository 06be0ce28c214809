// Opens models with variables, in any supported format, as frozen graphs.
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

// The model to freeze: a SavedModel, or else a MetaGraph, or else a graph, the latter two with a checkpoint.
struct FrozenModelRequest {
  std::string saved_model;
  std::string meta_graph;
  std::string graph;
  std::string checkpoint;         // Replaces the checkpoint of a SavedModel.
  std::string saver;              // A SaverDef file.
  std::string restore_op;         // The node that restores variables, if no other source names it.
  std::vector<std::string> tags;  // Tags of the SavedModel; empty: the only meta graph.
  std::string signature;          // Empty: "serving_default", or the only one.
  // Nodes, or keys of the signature. If empty, the outputs are those of the signature, and the placeholders and outputs
  // of the frozen graph are named by its keys.
  std::vector<std::string> outputs;
  // Without outputs and signature, keep all nodes that could be outputs, and declare no interface.
  bool finds_outputs = false;
  FreezeOptions options;  // Naming is filled in, except for the suffix of averages.
  OpenOptions open;
};

// A frozen graph and the signature of its interface.
struct FrozenModel {
  std::unique_ptr<Graph> graph;  // With a declared interface.
  FreezeReport report;
  std::optional<Signature> signature;  // The source of the interface, with the names of the frozen graph.
};

// Opens and freezes the model. Errors name the file or the missing flag. FailedPrecondition for a graph without
// variables beside a checkpoint, since it is already frozen.
absl::StatusOr<FrozenModel> OpenFrozenModel(FileSystem& files, const FrozenModelRequest& request);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_FROZEN_MODEL_H_

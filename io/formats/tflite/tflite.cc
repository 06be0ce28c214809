// Registers TensorFlow Lite models as a format.
#include "io/formats/tflite/tflite.h"

#include <utility>

#include "graph/base/status.h"
#include "io/formats/tflite/container.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

bool MayBeTflite(const ModelSource& source) { return HasTfliteIdentifier(source.head.bytes); }

absl::StatusOr<std::unique_ptr<Graph>> ReadTflite(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(FileView file, ReadAll(*source.bytes));
  const Owner owner = file.owner;
  PF_ASSIGN_OR_RETURN(TfliteContainer container, TfliteContainer::Open(std::move(file), options.max_model_bytes));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ImportTflite(std::move(container)));
  graph->Retain(owner);
  return graph;
}

absl::Status WriteTflite(const Graph& graph, ByteSink* sink) { return ExportTflite(graph, TfliteLimits(), sink); }

}  // namespace

const ModelFormat kTfliteFormat{"tflite", "TensorFlow Lite model", ".tflite", MayBeTflite, ReadTflite, WriteTflite,
                                nullptr};

}  // namespace permafrost

// Registers TensorFlow Lite models as a format.
#include "io/formats/tflite/tflite.h"

#include <utility>

#include "graph/base/status.h"
#include "io/formats/tflite/container.h"
#include "io/formats/tflite/provenance.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

bool MayBeTflite(const ModelSource& source) { return HasTfliteIdentifier(source.head.bytes); }

absl::StatusOr<std::unique_ptr<Graph>> ReadTflite(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(FileView file, ReadAll(*source.bytes));
  auto tflite = std::make_shared<TfliteSource>(std::move(file), options.max_model_bytes, 0);
  PF_ASSIGN_OR_RETURN(TfliteContainer container, tflite->Open());
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ImportTflite(std::move(container), tflite->entry()));
  AttachSource(graph.get(), std::move(tflite));
  return graph;
}

absl::Status WriteTflite(const Graph& graph, ByteSink* sink) {
  const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(graph);
  if (source == nullptr) return ExportTflite(graph, TfliteLimits(), sink);
  PF_ASSIGN_OR_RETURN(const bool is_unchanged, IsUnchanged(graph, *source));
  if (is_unchanged) return sink->Append(source->file().bytes);
  const std::unique_ptr<Graph> copy = graph.Clone();
  PF_RETURN_IF_ERROR(KeepOperators(copy.get()).status());
  return ExportTflite(*copy, TfliteLimits(), sink);
}

}  // namespace

const ModelFormat kTfliteFormat{"tflite", "TensorFlow Lite model", ".tflite", MayBeTflite, ReadTflite, WriteTflite,
                                nullptr};

}  // namespace permafrost

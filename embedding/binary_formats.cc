// Reads only binary GraphDefs and memory-mapped packages, the two formats of shipped models, for small builds.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "embedding/model_reading.h"
#include "graph/base/status.h"
#include "io/byte_source.h"
#include "io/formats/graphdef.h"
#include "io/formats/memmapped_package.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<Graph>> ReadModelBytes(FileView bytes, const OpenOptions& options) {
  if (bytes.bytes.empty()) return absl::InvalidArgumentError("the file is empty, expected a frozen graph");
  const size_t end = std::min<size_t>(bytes.bytes.size(), ModelSource::kEndBytes);
  const absl::string_view head = bytes.bytes.substr(0, end);
  const absl::string_view tail = bytes.bytes.substr(bytes.bytes.size() - end);
  const std::shared_ptr<const ByteSource> source = MemorySource(bytes);
  if (!LooksLikePackage(*source, head, tail)) {
    absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(bytes.bytes, bytes.owner);
    if (graph.ok() && (*graph)->first() != nullptr) return graph;
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be read: ", graph.ok() ? absl::string_view("it holds no nodes") : graph.status().message(),
                     "; this build of the runtime reads binary GraphDefs and memory-mapped packages, neither "
                     "compressed nor encrypted"));
  }
  PF_ASSIGN_OR_RETURN(const std::shared_ptr<const Package> package, OpenPackage(source));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, package->ReadGraph());
  PF_RETURN_IF_ERROR(package->MakeConstants(graph.get()));
  if (kKeepsPackedWeights && options.package != nullptr) *options.package = package;
  return graph;
}

}  // namespace permafrost

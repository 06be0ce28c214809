// Reads only binary GraphDefs and memory-mapped packages, the two formats of shipped models, for small builds.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "embedding/descriptor_view.h"
#include "embedding/model_reading.h"
#include "graph/base/status.h"
#include "io/byte_source.h"
#include "io/formats/graphdef.h"
#include "io/formats/memmapped_package.h"
#include "io/system_error.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<Graph>> ReadModelFile(const std::string& path, const OpenOptions& options) {
  int file;
  do {
    file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (file < 0 && errno == EINTR);
  if (file < 0) return SystemError("open", path, errno);
  const absl::Cleanup close_file = [file] { close(file); };
  PF_ASSIGN_OR_RETURN(FileView bytes, ViewDescriptor(file, 0, 0));
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadModelBytes(std::move(bytes), options);
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("'", path, "'"));
  return graph;
}

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

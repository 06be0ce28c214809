// Registers the memory-mapped package as a format.
#include "io/formats/package_format.h"

#include "graph/base/status.h"
#include "io/formats/memmapped_package.h"
#include "io/formats/package_conversion.h"

namespace permafrost {
namespace {

absl::StatusOr<std::unique_ptr<Graph>> Read(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(const std::shared_ptr<const Package> package, OpenPackage(source.bytes));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, package->ReadGraph());
  PF_RETURN_IF_ERROR(package->MakeConstants(graph.get()));
  if (options.package != nullptr) *options.package = package;
  return graph;
}

absl::Status Write(const Graph& graph, ByteSink* sink) {
  PF_ASSIGN_OR_RETURN(const PackageLayout layout, LayOutPackage(graph, PackageOptions()));
  return WritePackage(layout, sink);
}

// Returns 0 if the layout fails; writing then reports the error.
uint64_t Size(const Graph& graph) {
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(graph, PackageOptions());
  return layout.ok() ? layout->file_bytes : 0;
}

}  // namespace

const ModelFormat kPackageFormat{
    "package",
    "memory-mapped package",
    ".pbmm",
    [](const ModelSource& source) { return LooksLikePackage(*source.bytes, source.head.bytes, source.tail.bytes); },
    Read,
    Write,
    Size};

}  // namespace permafrost

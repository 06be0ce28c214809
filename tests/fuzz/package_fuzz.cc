// Fuzz target: bytes as a memory-mapped package. Accepted packages must be the same graph when written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "io/byte_source.h"
#include "io/formats/memmapped_package.h"
#include "io/formats/package_conversion.h"

namespace permafrost {
namespace {

absl::StatusOr<std::unique_ptr<Graph>> Read(const std::string& bytes) {
  const auto kept = std::make_shared<const std::string>(bytes);
  PF_ASSIGN_OR_RETURN(const std::shared_ptr<const Package> package, OpenPackage(MemorySource({*kept, kept})));
  for (const PackageRegion& region : package->regions()) PF_RETURN_IF_ERROR(package->Read(region.name).status());
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, package->ReadGraph());
  PF_RETURN_IF_ERROR(package->MakeConstants(graph.get()));
  return graph;
}

// Returns a description of the error found, or an empty string.
std::string Problem(const std::string& bytes) {
  const absl::StatusOr<std::unique_ptr<Graph>> graph = Read(bytes);
  if (!graph.ok()) return graph.status().message().empty() ? "an error without a message" : "";
  PackageOptions options;
  options.min_conversion_tensor_size = 1;
  options.include_quantized = true;
  options.dedupe = true;
  const absl::StatusOr<PackageLayout> layout = LayOutPackage(**graph, options);
  // A value that is well-formed in wire format may still not decode; there is nothing to check then.
  StringSink sink;
  if (!layout.ok() || !WritePackage(*layout, &sink).ok()) return "";
  if (sink.text().size() != layout->file_bytes) return "the size differs from that of the layout";
  const absl::StatusOr<std::unique_ptr<Graph>> again = Read(sink.text());
  if (!again.ok()) return std::string(again.status().message());
  // Values may have another encoding, but nodes and their number are the same.
  if ((*again)->num_nodes() != (*graph)->num_nodes()) return "the number of nodes changed";
  const Node* other = (*again)->first();
  for (const Node* node = (*graph)->first(); node != nullptr; node = node->next(), other = other->next()) {
    if (node->op() != ops::kConst) continue;
    const absl::StatusOr<Tensor> a = ConstValue(*node), b = ConstValue(*other);
    if (a.ok() != b.ok() || (a.ok() && *a != *b)) return "a value changed";
  }
  return "";
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string problem = permafrost::Problem(bytes);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\ninput: \"%s\"\n", problem.c_str(), absl::CHexEscape(bytes).c_str());
    std::abort();
  }
  return 0;
}

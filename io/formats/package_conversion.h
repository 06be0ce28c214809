// Converts a graph to a memory-mapped package: selects the constants that become regions, and writes the package.
#ifndef PERMAFROST_IO_FORMATS_PACKAGE_CONVERSION_H_
#define PERMAFROST_IO_FORMATS_PACKAGE_CONVERSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/formats/memmapped_package.h"

namespace permafrost {

// A region other than tensors and the graph.
struct ExtraRegion {
  std::string name;  // Including the prefix.
  uint64_t bytes = 0;
  std::function<absl::Status(ByteSink* sink)> write;  // Appends exactly `bytes` bytes.
};

struct PackageOptions {
  // Constants with fewer bytes stay in the graph. The default is that of TensorFlow's converter.
  uint64_t min_conversion_tensor_size = 10000;
  uint64_t alignment = kTensorAlignment;  // A power of two.
  // Store constants with equal bytes in one region.
  bool dedupe = false;
  // Also convert constants of types qint8, quint8, qint16, quint16 and qint32. TensorFlow's converter leaves them in
  // the graph, but its ImmutableConst supports them.
  bool include_quantized = false;
  // Additional regions for readers that know their names. They start at page boundaries.
  std::vector<ExtraRegion> extra;
};

// A constant that becomes an ImmutableConst.
struct PackedConstant {
  const Node* node = nullptr;  // In the converted graph.
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t bytes = 0;
  size_t region = 0;  // Index into PackageLayout::regions.
};

struct RegionLayout {
  std::string name;
  uint64_t offset = 0;
  uint64_t length = 0;
  const Node* node = nullptr;  // The node whose value it is; the first of several.
};

// Number of large constants that stay in the graph, by reason.
struct KeptConstants {
  uint64_t of_type = 0;     // Quantised types that are not included, and strings.
  uint64_t for_shapes = 0;  // Shapes of other nodes depend on them.
};

// The layout of a package. Refers to the graph that it was made from.
struct PackageLayout {
  std::vector<PackedConstant> constants;  // In graph order.
  std::vector<RegionLayout> regions;      // Without the region of the graph.
  std::vector<ExtraRegion> extra;         // Placed after `regions`.
  KeptConstants kept;
  std::unique_ptr<Graph> graph;  // The graph of the package.
  uint64_t graph_bytes = 0;      // Size of `graph` as a GraphDef.
  uint64_t file_bytes = 0;       // Size of the package.
  uint64_t alignment = kTensorAlignment;
};

// Lays out the package. Regions are made for the values of Const nodes that have fixed-size elements and at least the
// minimum size, unless shapes of other nodes depend on them (TensorFlow's loaders expect those in the graph). Values
// are not decoded or read, unless equal ones must be found. Attributes that start with "_" stay with their nodes.
// Returns InvalidArgument, with the node, for a malformed value, FailedPrecondition if the rest of the graph exceeds
// the limit of a GraphDef.
absl::StatusOr<PackageLayout> LayOutPackage(const Graph& graph, const PackageOptions& options);

// Writes a package. Values are passed to the sink as views. Values that must be decoded are in memory one at a
// time. REQUIRES: layout.graph is unchanged.
absl::Status WritePackage(const PackageLayout& layout, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_PACKAGE_CONVERSION_H_

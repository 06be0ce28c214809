// Turns a graph into a memory-mapped package: decides which constants become regions, and writes them one by one.
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

// What is in a package beside tensors and the graph.
struct ExtraRegion {
  std::string name;  // With the prefix.
  uint64_t bytes = 0;
  std::function<absl::Status(ByteSink* sink)> write;  // As many bytes.
};

struct PackageOptions {
  // Constants of fewer bytes stay in the graph. The default is that of TensorFlow's converter.
  uint64_t min_conversion_tensor_size = 10000;
  uint64_t alignment = kTensorAlignment;  // A power of two.
  // Constants with the same bytes share one region.
  bool dedupe = false;
  // Constants of the types qint8, quint8, qint16, quint16 and qint32, which TensorFlow's converter leaves in the graph,
  // become regions too; its ImmutableConst takes them.
  bool include_quantized = false;
  // Regions beside those of constants, for readers that know their names; they begin on pages of their own.
  std::vector<ExtraRegion> extra;
};

// One constant that becomes an ImmutableConst.
struct PackedConstant {
  const Node* node = nullptr;  // Of the graph that is converted.
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t bytes = 0;
  size_t region = 0;  // Index into PackagePlan::regions.
};

struct PlannedRegion {
  std::string name;
  uint64_t offset = 0;
  uint64_t length = 0;
  const Node* node = nullptr;  // Whose value it is; the first of those that share it.
};

// Why large constants stay in the graph.
struct KeptConstants {
  uint64_t of_type = 0;     // Quantised, and not asked for; text.
  uint64_t for_shapes = 0;  // What the shapes of other nodes depend on.
};

// What a package will be. Refers to the graph that it was made from.
struct PackagePlan {
  std::vector<PackedConstant> constants;  // In the order of the graph.
  std::vector<PlannedRegion> regions;     // Without that of the graph.
  std::vector<ExtraRegion> extra;         // Behind those.
  KeptConstants kept;
  std::unique_ptr<Graph> graph;  // What the package's graph will be.
  uint64_t graph_bytes = 0;      // Of it, as a GraphDef.
  uint64_t file_bytes = 0;       // Of the package.
  uint64_t alignment = kTensorAlignment;
};

// Decides what becomes a region: the values of nodes Const, of a type with fixed-size elements, of at least the least
// size, and not read by the shapes of other nodes (TensorFlow's loaders look for those in the graph). No value is
// decoded, or read, unless equal ones are to be found. Attributes that begin with "_" stay with their nodes.
// InvalidArgument names a node whose value is malformed; FailedPrecondition: what stays in the graph is more than a
// GraphDef can hold.
absl::StatusOr<PackagePlan> PlanPackage(const Graph& graph, const PackageOptions& options);

// Writes the package that was planned. Values reach the sink as the views that they are; one that has to be decoded is
// the only one in memory. REQUIRES: the graph of the plan is as it was.
absl::Status WritePackage(const PackagePlan& plan, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_PACKAGE_CONVERSION_H_

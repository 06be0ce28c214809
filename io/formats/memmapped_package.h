// TensorFlow's memory-mapped package: tensors laid out for the processor, a graph that names them, and a directory
// (docs/formats/memmapped_package.md).
#ifndef PERMAFROST_IO_FORMATS_MEMMAPPED_PACKAGE_H_
#define PERMAFROST_IO_FORMATS_MEMMAPPED_PACKAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/wire.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "io/byte_source.h"

namespace permafrost {

// What the name of every region begins with, and the name of the graph's.
inline constexpr absl::string_view kPackagePrefix = "memmapped_package://";
inline constexpr absl::string_view kPackageGraphName = "memmapped_package://.";

// Where tensors begin: what TensorFlow wants since late 1.x, and what Tensor::IsAligned() asks for.
inline constexpr uint64_t kTensorAlignment = 64;
// The least that any TensorFlow ever wrote.
inline constexpr uint64_t kLeastTensorAlignment = 32;
// A page of the processors that mapped models run on: a tensor of its own pages can be dropped from memory, locked and
// asked for ahead by itself.
inline constexpr uint64_t kPageAlignment = 4096;

struct PackageRegion {
  absl::string_view name;  // With the prefix. Lives as long as the package.
  uint64_t offset = 0;     // Of its first byte in the package.
  uint64_t length = 0;     // Bytes. In packages of old writers, which do not say, with the padding that follows.
};

// A package to read from. Thread-safe.
class Package {
 public:
  // In the order of their offsets.
  absl::Span<const PackageRegion> regions() const { return regions_; }
  // Null when there is none of that name.
  const PackageRegion* Find(absl::string_view name) const;

  // The bytes of a region: exactly those are asked of the source. NotFound.
  absl::StatusOr<FileView> Read(absl::string_view name) const;

  // The tensor that a region holds, a view of it where the source has it in memory. NotFound; DataLoss when the region
  // is too short, or begins where no writer puts a tensor.
  absl::StatusOr<Tensor> ReadTensor(absl::string_view name, DType dtype, const Shape& shape) const;

  // The graph as it is written: nodes ImmutableConst name regions, of which nothing is read. Views the package's
  // memory, which it keeps alive.
  absl::StatusOr<std::unique_ptr<Graph>> ReadGraph() const;

  // Makes a Const of each ImmutableConst of `graph` whose region name has the prefix; its value is what ReadTensor
  // gives, so mapped regions are not touched. Those that name files stay. Regions that several nodes name are read
  // once. DataLoss names the node; *graph is then of no use.
  absl::Status MakeConstants(Graph* graph) const;

 private:
  friend absl::StatusOr<std::shared_ptr<const Package>> OpenPackage(std::shared_ptr<const ByteSource> source);
  absl::Status ReadDirectory();
  absl::Status AddRegion(const PackageRegion& region, uint64_t end);
  absl::Status CheckTensorRegion(const PackageRegion& region, DType dtype, const Shape& shape, uint64_t* size) const;

  std::shared_ptr<const ByteSource> source_;
  FileView directory_;
  std::vector<PackageRegion> regions_;
  absl::flat_hash_map<absl::string_view, size_t> by_name_;
};

// Reads the directory of a package, and nothing else. Takes packages of every TensorFlow, those without lengths too.
// DataLoss, with the place: no such directory, regions that overlap, lie outside, have no name or one twice.
absl::StatusOr<std::shared_ptr<const Package>> OpenPackage(std::shared_ptr<const ByteSource> source);

// Writes a package piece by piece; nothing but the directory is held. Regions first, then Finish. Not thread-safe.
class PackageWriter {
 public:
  // Does not own `sink`. Tensors begin at multiples of `alignment` bytes, a power of two.
  explicit PackageWriter(ByteSink* sink, uint64_t alignment = kTensorAlignment) : sink_(sink), alignment_(alignment) {}

  // Begins the region of a tensor; its elements, row-major and little-endian, follow in calls of Append.
  // InvalidArgument for a name without the prefix, with other characters than A-Z a-z 0-9 _ . after it, or given
  // before.
  absl::Status BeginTensor(absl::string_view name);
  // The same for what begins at a multiple of `alignment`, a power of two up to kPageAlignment.
  absl::Status BeginAligned(absl::string_view name, uint64_t alignment);
  // The same for a message, which needs no alignment.
  absl::Status BeginMessage(absl::string_view name);
  absl::Status Append(absl::string_view bytes);

  // BeginTensor and Append.
  absl::Status AddTensor(absl::string_view name, absl::string_view elements);
  // The default graph, as a region of its own.
  absl::Status AddGraph(const Graph& graph);

  // Writes the directory. InvalidArgument when a region has no bytes, as no reader takes that; this is also found by
  // the next Begin. REQUIRES: called once, at the end.
  absl::Status Finish();

  // Bytes so far.
  uint64_t offset() const { return offset_; }

 private:
  absl::Status Begin(absl::string_view name);
  absl::Status EndRegion();
  absl::Status Write(absl::string_view bytes);

  ByteSink* sink_;
  uint64_t alignment_;
  uint64_t offset_ = 0;
  std::string directory_;  // Of the regions that have ended.
  absl::flat_hash_set<std::string> names_;
  std::string name_;  // Of the region that is open; empty when none is.
  uint64_t begin_ = 0;
};

// The region that is open in a writer.
class RegionSink : public ByteSink {
 public:
  explicit RegionSink(PackageWriter* writer) : writer_(writer) {}
  absl::Status Append(absl::string_view bytes) override { return writer_->Append(bytes); }

 private:
  PackageWriter* const writer_;
};

// Bytes of a directory's entry.
uint64_t PackageEntrySize(absl::string_view name, uint64_t offset, uint64_t length);
// `offset`, or the next multiple of `alignment` (a power of two).
inline uint64_t AlignUp(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

// Gives nodes their regions' names, as TensorFlow's converter does: the prefix, then the node's name with "_" for every
// character that a region may not have, then more "_" (a number after very many) until nobody else has it.
class RegionNames {
 public:
  // Nobody gets this one.
  void Reserve(absl::string_view name) { taken_.insert(std::string(name)); }
  std::string NameFor(absl::string_view node_name);

 private:
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, size_t> suffixes_;  // By name without a suffix: the first that may be free.
};

// True for a source that ends as a package does, and for one that seems to have been one before it was cut.
bool LooksLikePackage(const ByteSource& source, absl::string_view head, absl::string_view tail);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_MEMMAPPED_PACKAGE_H_

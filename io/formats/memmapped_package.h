// TensorFlow's memory-mapped package: aligned tensors, a graph that refers to them, and a directory
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

// The prefix of all region names, and the name of the graph's region.
inline constexpr absl::string_view kPackagePrefix = "memmapped_package://";
inline constexpr absl::string_view kPackageGraphName = "memmapped_package://.";

// Alignment of tensors: required by TensorFlow since late 1.x, and by Tensor::IsAligned().
inline constexpr uint64_t kTensorAlignment = 64;
// The smallest alignment that any version of TensorFlow wrote.
inline constexpr uint64_t kLeastTensorAlignment = 32;
// The page size of the processors on which mapped models run. A tensor in its own pages can be released, locked and
// prefetched separately.
inline constexpr uint64_t kPageAlignment = 4096;

struct PackageRegion {
  absl::string_view name;  // Including the prefix. Lives as long as the package.
  uint64_t offset = 0;     // Offset of the first byte in the package.
  uint64_t length = 0;     // In bytes. Includes the padding in packages of old writers, which store no lengths.
};

// A package opened for reading. Thread-safe.
class Package {
 public:
  // All regions, in the order of their offsets.
  absl::Span<const PackageRegion> regions() const { return regions_; }
  // Returns null if there is no such region.
  const PackageRegion* Find(absl::string_view name) const;

  // Reads the bytes of a region, and no others, from the source. Returns NotFound if there is no such region.
  absl::StatusOr<FileView> Read(absl::string_view name) const;

  // Returns the tensor in a region, as a view if the source is in memory. Returns NotFound if there is no such region,
  // DataLoss if the region has the wrong size or an alignment that no writer produces.
  absl::StatusOr<Tensor> ReadTensor(absl::string_view name, DType dtype, const Shape& shape) const;

  // Returns the graph as stored: ImmutableConst nodes name regions, which are not read. The graph views the package's
  // memory and keeps it alive.
  absl::StatusOr<std::unique_ptr<Graph>> ReadGraph() const;

  // Replaces each ImmutableConst of `graph` whose region name has the prefix by a Const with the value of ReadTensor,
  // so that mapped regions are not accessed. Leaves those that name files. Reads a region only once if several nodes
  // refer to it. Returns DataLoss with the node; *graph is then unspecified.
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

// Reads the directory of a package and nothing else. Accepts packages of every version of TensorFlow, including those
// without lengths. Returns DataLoss, with the place, for a missing directory and for regions that overlap, are out of
// bounds, have no name or have the same name as another.
absl::StatusOr<std::shared_ptr<const Package>> OpenPackage(std::shared_ptr<const ByteSource> source);

// Writes a package region by region, and holds only the directory in memory. Not thread-safe.
class PackageWriter {
 public:
  // Does not own `sink`. Tensors are aligned to `alignment` bytes, a power of two.
  explicit PackageWriter(ByteSink* sink, uint64_t alignment = kTensorAlignment) : sink_(sink), alignment_(alignment) {}

  // Starts the region of a tensor. Calls of Append add its elements, row-major and little-endian. Returns
  // InvalidArgument if the name lacks the prefix, has other characters than A-Z a-z 0-9 _ . after it, or has been used
  // before.
  absl::Status BeginTensor(absl::string_view name);
  // Same, for a region aligned to `alignment`, a power of two up to kPageAlignment.
  absl::Status BeginAligned(absl::string_view name, uint64_t alignment);
  // Same, for a message, which needs no alignment.
  absl::Status BeginMessage(absl::string_view name);
  absl::Status Append(absl::string_view bytes);

  // Calls BeginTensor and Append.
  absl::Status AddTensor(absl::string_view name, absl::string_view elements);
  // Adds the default graph as a region.
  absl::Status AddGraph(const Graph& graph);

  // Writes the directory. Returns InvalidArgument if a region is empty, because readers reject that; the next Begin
  // reports it too. REQUIRES: called once, at the end.
  absl::Status Finish();

  // Number of bytes written so far.
  uint64_t offset() const { return offset_; }

 private:
  absl::Status Begin(absl::string_view name);
  absl::Status EndRegion();
  absl::Status Write(absl::string_view bytes);

  ByteSink* sink_;
  uint64_t alignment_;
  uint64_t offset_ = 0;
  std::string directory_;  // Entries of the finished regions.
  absl::flat_hash_set<std::string> names_;
  std::string name_;  // Name of the open region; empty if there is none.
  uint64_t begin_ = 0;
};

// Appends to the open region of a writer.
class RegionSink : public ByteSink {
 public:
  explicit RegionSink(PackageWriter* writer) : writer_(writer) {}
  absl::Status Append(absl::string_view bytes) override { return writer_->Append(bytes); }

 private:
  PackageWriter* const writer_;
};

// Returns the size of a directory entry in bytes.
uint64_t PackageEntrySize(absl::string_view name, uint64_t offset, uint64_t length);
// Returns `offset` rounded up to a multiple of `alignment`, a power of two.
inline uint64_t AlignUp(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

// Assigns region names to nodes like TensorFlow's converter: the prefix, then the node's name with "_" for every
// character that is not allowed. If the name is taken, it appends more "_", or a number after many attempts.
class RegionNames {
 public:
  // Excludes a name from assignment.
  void Reserve(absl::string_view name) { taken_.insert(std::string(name)); }
  std::string NameFor(absl::string_view node_name);

 private:
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, size_t> suffixes_;  // By name without suffix: the first suffix that may be free.
};

// True for a source that ends like a package, and for one that appears to be a truncated package.
bool LooksLikePackage(const ByteSource& source, absl::string_view head, absl::string_view tail);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_MEMMAPPED_PACKAGE_H_

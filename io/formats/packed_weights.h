// Packed weights: weights in the layout of a delegate, in a file or in a region of a package
// (docs/formats/packed_weights.md).
#ifndef PERMAFROST_IO_FORMATS_PACKED_WEIGHTS_H_
#define PERMAFROST_IO_FORMATS_PACKED_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/wire.h"
#include "io/file_system.h"

namespace permafrost {

// Prefix of the names of regions that hold such a file in a package. The names of delegate and precision follow. In a
// package the file is aligned to kPageAlignment.
inline constexpr absl::string_view kPackedRegionPrefix = "memmapped_package://.packed.";

// Alignment of entries relative to the start of the file; suffices for the vectors of every processor.
inline constexpr uint64_t kPackedAlignment = 64;

// Conditions under which the entries are valid. All members must be equal to those of the current run.
struct PackedMaker {
  std::string model;     // Identifies the model; empty in a package, which contains it.
  std::string delegate;  // Its name.
  std::string identity;  // Of the layouts: library, version, instruction sets of the processor.
  std::string precision;
  std::string plan;  // The precision plan as text; empty if the precision needs none.
};

struct PackedEntry {
  absl::string_view key;  // Lives as long as the file's bytes.
  uint64_t offset = 0;    // From the start of the file.
  uint64_t length = 0;    // In bytes.
  uint64_t hash = 0;      // HashContent of the bytes.
};

// A file opened for reading. Thread-safe.
class PackedWeightsFile {
 public:
  const PackedMaker& maker() const { return maker_; }
  // All entries, in the order of their offsets.
  absl::Span<const PackedEntry> entries() const { return entries_; }
  // Returns null if there is none.
  const PackedEntry* Find(absl::string_view key) const;
  // Returns a view of the entry's bytes.
  FileView Bytes(const PackedEntry& entry) const;
  // Returns DataLoss if the bytes do not match their hash. Reads all of them.
  absl::Status Check(const PackedEntry& entry) const;

 private:
  friend absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> OpenPackedWeights(FileView file);
  absl::Status ReadTable(absl::string_view table);

  FileView file_;
  PackedMaker maker_;
  std::vector<PackedEntry> entries_;
  absl::flat_hash_map<absl::string_view, size_t> by_key_;
};

// Reads and checks the table without reading entries. Returns DataLoss, with the place, for a damaged or truncated
// file; InvalidArgument for another kind of file; Unimplemented for another version.
absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> OpenPackedWeights(FileView file);

// An entry to be written. Owns neither key nor bytes.
struct PackedPiece {
  absl::string_view key, bytes;
};

// Writes a file. Returns InvalidArgument for an empty entry. REQUIRES: keys are unique.
absl::Status WritePackedWeights(const PackedMaker& maker, absl::Span<const PackedPiece> pieces, ByteSink* sink);

// Returns the number of bytes that WritePackedWeights writes.
uint64_t PackedWeightsSize(const PackedMaker& maker, absl::Span<const PackedPiece> pieces);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_PACKED_WEIGHTS_H_

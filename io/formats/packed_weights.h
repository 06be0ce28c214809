// Weights as a delegate packed them, in a file or in a region of a package (docs/formats/packed_weights.md).
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

// What the names of regions begin with that hold such a file in a package, a delegate and a precision follow. The file
// begins at a multiple of kPageAlignment there.
inline constexpr absl::string_view kPackedRegionPrefix = "memmapped_package://.packed.";

// Where entries begin, from the start of the file on: what vectors of every processor take.
inline constexpr uint64_t kPackedAlignment = 64;

// What the entries are good for. All of it must be as it is now, or they are not.
struct PackedMaker {
  std::string model;     // What tells the model from others; empty in a package, which holds it.
  std::string delegate;  // Its name.
  std::string identity;  // Of its layouts: library, version, instructions of the processor.
  std::string precision;
  std::string plan;  // The precision plan, as text; empty where the precision wants none.
};

struct PackedEntry {
  absl::string_view key;  // Lives as long as the file's bytes.
  uint64_t offset = 0;    // In the file.
  uint64_t length = 0;    // Bytes.
  uint64_t hash = 0;      // HashContent of them.
};

// A file to read from. Thread-safe.
class PackedWeightsFile {
 public:
  const PackedMaker& maker() const { return maker_; }
  // In the order of their offsets.
  absl::Span<const PackedEntry> entries() const { return entries_; }
  // Null when there is none.
  const PackedEntry* Find(absl::string_view key) const;
  // A view of the file.
  FileView Bytes(const PackedEntry& entry) const;
  // DataLoss when the bytes are not those that were written: reads them all.
  absl::Status Check(const PackedEntry& entry) const;

 private:
  friend absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> OpenPackedWeights(FileView file);
  absl::Status ReadTable(absl::string_view table);

  FileView file_;
  PackedMaker maker_;
  std::vector<PackedEntry> entries_;
  absl::flat_hash_map<absl::string_view, size_t> by_key_;
};

// Reads the table and checks it, and touches no entry. DataLoss, with the place, for what is damaged or cut short;
// InvalidArgument for another kind of file; Unimplemented for another version of this one.
absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> OpenPackedWeights(FileView file);

// An entry to be written; neither key nor bytes are owned.
struct PackedPiece {
  absl::string_view key, bytes;
};

// Keys must differ. InvalidArgument for an entry without bytes.
absl::Status WritePackedWeights(const PackedMaker& maker, absl::Span<const PackedPiece> pieces, ByteSink* sink);

// Bytes that this writes.
uint64_t PackedWeightsSize(const PackedMaker& maker, absl::Span<const PackedPiece> pieces);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_PACKED_WEIGHTS_H_

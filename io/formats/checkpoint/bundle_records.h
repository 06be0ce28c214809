// Messages in the index of a checkpoint of version 2.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_RECORDS_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_RECORDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "io/formats/checkpoint/tensor_slice.h"

namespace permafrost {

// BundleHeaderProto.
struct BundleHeader {
  int32_t num_shards = 0;
  bool is_big_endian = false;
};

// A range of bytes in a shard.
struct BundleExtent {
  int32_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t masked_crc = 0;
};

// BundleEntryProto.
struct BundleEntry {
  DType dtype = DType::kInvalid;
  Shape shape;  // Fully known; the number of elements fits into int64.
  BundleExtent extent;
  std::vector<TensorSlice> slices;  // If not empty, each slice has an entry of its own with its values.
};

// Parse a record. Return DataLoss for malformed bytes, FailedPrecondition for a newer version of the format.
absl::StatusOr<BundleHeader> ParseBundleHeader(absl::string_view encoded);
absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view encoded);

// Checks the VersionDef of a checkpoint. Returns FailedPrecondition unless readers of format version 1 may read it.
absl::Status CheckCheckpointVersion(absl::string_view encoded);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_RECORDS_H_

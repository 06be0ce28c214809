// The messages in the index of a checkpoint of version 2.
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

// Bytes of a shard.
struct BundleExtent {
  int32_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t masked_crc = 0;
};

// BundleEntryProto.
struct BundleEntry {
  DType dtype = DType::kInvalid;
  Shape shape;  // Fully known, and its number of elements fits.
  BundleExtent extent;
  std::vector<TensorSlice> slices;  // Where there are any, the values are in entries of their own.
};

// DataLoss for what is malformed; FailedPrecondition for a version that is from the future.
absl::StatusOr<BundleHeader> ParseBundleHeader(absl::string_view encoded);
absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view encoded);

// VersionDef, as all checkpoints hold it: FailedPrecondition unless readers of the format's version 1 may read it.
absl::Status CheckCheckpointVersion(absl::string_view encoded);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_RECORDS_H_

// Implements decoding of the header and entries. Field numbers: tensorflow/core/protobuf/tensor_bundle.proto and
// versions.proto.
#include "io/formats/checkpoint/bundle_records.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/wire_format/tensor_proto.h"

namespace permafrost {
namespace {

enum HeaderField : uint32_t { kNumShards = 1, kEndianness = 2, kVersion = 3 };
enum EntryField : uint32_t { kDType = 1, kShape = 2, kShardId = 3, kOffset = 4, kSize = 5, kCrc = 6, kSlices = 7 };
enum VersionField : uint32_t { kMinConsumer = 2, kBadConsumers = 3 };

// The version that TensorFlow has written since 2016 in both kinds of checkpoint.
constexpr int32_t kOurVersion = 1;

absl::Status BadConsumer() {
  return absl::FailedPreconditionError(absl::StrCat("the checkpoint excludes readers of version ", kOurVersion));
}

}  // namespace

absl::Status CheckCheckpointVersion(absl::string_view encoded) {
  return ForEachField(encoded, [&](const WireField& field) {
    if (field.number == kMinConsumer && field.type == WireType::kVarint) {
      const auto wanted = static_cast<int32_t>(field.value);
      if (wanted > kOurVersion) {
        return absl::FailedPreconditionError(absl::StrCat("the checkpoint requires a reader of version ", wanted,
                                                          " or later, but this reader has version ", kOurVersion));
      }
    } else if (field.number == kBadConsumers && field.type == WireType::kVarint) {
      if (static_cast<int32_t>(field.value) == kOurVersion) return BadConsumer();
    } else if (IsMessage(field, kBadConsumers)) {
      absl::string_view list = field.bytes;
      uint64_t version;
      bool error = false;
      while (NextPackedVarint(&list, &version, &error)) {
        if (static_cast<int32_t>(version) == kOurVersion) return BadConsumer();
      }
      if (error) return absl::DataLossError("a list of versions is truncated within a number");
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<BundleHeader> ParseBundleHeader(absl::string_view encoded) {
  constexpr uint64_t kLittle = 0, kBig = 1;
  BundleHeader header;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) {
    if (field.number == kNumShards && field.type == WireType::kVarint) {
      header.num_shards = static_cast<int32_t>(field.value);
    } else if (field.number == kEndianness && field.type == WireType::kVarint) {
      if (field.value != kLittle && field.value != kBig) {
        return absl::DataLossError(
            absl::StrCat("found the byte order ", field.value, ", expected 0 (little-endian) or 1 (big-endian)"));
      }
      header.is_big_endian = field.value == kBig;
    } else if (IsMessage(field, kVersion)) {
      return CheckCheckpointVersion(field.bytes);
    }
    return absl::OkStatus();
  }));
  if (header.num_shards <= 0) {
    return absl::DataLossError(absl::StrCat("found ", header.num_shards, " shards, expected at least 1"));
  }
  return header;
}

absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view encoded) {
  BundleEntry entry;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) {
    if (IsMessage(field, kShape)) {
      PF_ASSIGN_OR_RETURN(entry.shape, ParseShapeProto(field.bytes));
    } else if (IsMessage(field, kSlices)) {
      PF_ASSIGN_OR_RETURN(TensorSlice slice, ParseTensorSlice(field.bytes));
      entry.slices.push_back(std::move(slice));
    } else if (field.number == kCrc && field.type == WireType::kFixed32) {
      entry.extent.masked_crc = static_cast<uint32_t>(field.value);
    } else if (field.type == WireType::kVarint) {
      if (field.number == kDType) entry.dtype = static_cast<DType>(static_cast<int32_t>(field.value));
      if (field.number == kShardId) entry.extent.shard = static_cast<int32_t>(field.value);
      if (field.number == kOffset) entry.extent.offset = field.value;
      if (field.number == kSize) entry.extent.size = field.value;
    }
    return absl::OkStatus();
  }));
  if (!entry.shape.IsFullyKnown()) {
    return absl::DataLossError(absl::StrCat("found the shape ", entry.shape.ToString(), ", expected a known one"));
  }
  PF_RETURN_IF_ERROR(entry.shape.CheckedNumElements().status());
  return entry;
}

}  // namespace permafrost

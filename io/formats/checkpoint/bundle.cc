// Implements checkpoints of version 2: reads the index, and values from the shards.
#include "io/formats/checkpoint/bundle.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "io/checked_files.h"
#include "io/crc32c.h"
#include "io/formats/checkpoint/bundle_records.h"
#include "io/formats/checkpoint/sorted_table.h"
#include "io/formats/checkpoint/string_values.h"
#include "io/formats/checkpoint/variable_list.h"
#include "io/mapped_pages.h"

namespace permafrost {
namespace {

// Returns the number of bytes that byte swapping reverses. A complex number consists of two such units.
size_t SwappedUnit(DType dtype) {
  const size_t size = SizeOf(dtype);
  return dtype == DType::kComplex64 || dtype == DType::kComplex128 ? size / 2 : size;
}

absl::StatusOr<Tensor> SwapBytes(const Tensor& tensor) {
  const size_t unit = SwappedUnit(tensor.dtype());
  char* data;
  PF_ASSIGN_OR_RETURN(Tensor swapped, Tensor::Allocate(tensor.dtype(), tensor.shape(), &data));
  const absl::string_view bytes = tensor.bytes();
  for (size_t i = 0; i < bytes.size(); i += unit) std::reverse_copy(&bytes[i], &bytes[i] + unit, data + i);
  return swapped;
}

// Maps a file of the checkpoint, which must not lead out of the checkpoint's folder.
absl::StatusOr<FileView> MapBeside(FileSystem& files, const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // 0 without a folder.
  return MapFileIn(files, path.substr(0, name), path.substr(name));
}

class Bundle : public VariableSource {
 public:
  Bundle(std::string prefix, const OpenOptions& options) : prefix_(std::move(prefix)), options_(options) {}

  absl::Status Open(FileSystem& files) {
    const std::string index = absl::StrCat(prefix_, ".index");
    PF_ASSIGN_OR_RETURN(FileView file, MapBeside(files, index));
    PF_RETURN_IF_ERROR(Annotate(ReadIndex(std::move(file)), absl::StrCat("'", index, "'")));
    PF_RETURN_IF_ERROR(OpenShards(files));
    PF_RETURN_IF_ERROR(Annotate(CheckExtents(), absl::StrCat("'", index, "'")));
    return absl::OkStatus();
  }

  absl::Span<const VariableInfo> variables() const override { return list_.variables(); }

  absl::StatusOr<Tensor> Read(absl::string_view name) const override {
    const absl::StatusOr<size_t> i = list_.Find(name);
    if (!i.ok()) return Annotate(i.status(), absl::StrCat("checkpoint '", prefix_, "'"));
    const VariableInfo& variable = list_.variables()[*i];
    absl::StatusOr<Tensor> value = ReadValue(variable, values_[*i]);
    if (!value.ok()) {
      return Annotate(value.status(), absl::StrCat("checkpoint '", prefix_, "': variable '", name, "'"));
    }
    return value;
  }

 private:
  struct Part {
    TensorSlice slice;
    Shape shape;
    BundleExtent extent;
  };
  // Location of a variable: either an extent or slices.
  struct Value {
    BundleExtent extent;
    std::vector<Part> parts;
  };
  struct Shard {
    std::string path;
    FileView file;
  };
  // The extent of a variable in a shard.
  struct Claim {
    const BundleExtent* extent;
    size_t variable;
  };

  absl::Status ReadIndex(FileView file) {
    PF_ASSIGN_OR_RETURN(const SortedTable table, SortedTable::Open(std::move(file)));
    absl::flat_hash_map<std::string, BundleEntry> parts;  // By key of the slice.
    std::vector<std::vector<TensorSlice>> slices;         // By variable.
    bool has_header = false;
    PF_RETURN_IF_ERROR(table.ForEach([&](const std::string& key, const FileView& value) -> absl::Status {
      if (key.empty()) {
        has_header = true;
        absl::StatusOr<BundleHeader> header = ParseBundleHeader(value.bytes);
        if (!header.ok()) return Annotate(header.status(), "header");
        header_ = *header;
        return absl::OkStatus();
      }
      if (!has_header) return absl::DataLossError("found no header, expected the index of a checkpoint");
      const bool is_part = key[0] == '\0';
      absl::StatusOr<BundleEntry> entry = ParseBundleEntry(value.bytes);
      const absl::Status status = entry.ok() ? CheckEntry(*entry) : entry.status();
      if (!status.ok()) return is_part ? Annotate(status, "a slice") : Annotate(status, InVariable(key));
      if (is_part) {
        parts.emplace(key, *std::move(entry));
        return absl::OkStatus();
      }
      list_.Add({key, entry->dtype, std::move(entry->shape)});
      values_.push_back({entry->extent, {}});
      slices.push_back(std::move(entry->slices));
      return absl::OkStatus();
    }));
    if (!has_header) return absl::DataLossError("found no header, expected the index of a checkpoint");
    for (size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].empty()) continue;
      const VariableInfo& variable = list_.variables()[i];
      PF_RETURN_IF_ERROR(
          Annotate(FindParts(variable, std::move(slices[i]), &parts, &values_[i].parts), InVariable(variable.name)));
    }
    return absl::OkStatus();
  }

  static std::string InVariable(absl::string_view name) { return absl::StrCat("variable '", name, "'"); }

  absl::Status CheckEntry(const BundleEntry& entry) const {
    if (entry.dtype == DType::kInvalid) return absl::DataLossError("has no type");
    const BundleExtent& extent = entry.extent;
    if (extent.shard < 0 || extent.shard >= header_.num_shards) {
      return absl::DataLossError(
          absl::StrCat("is in shard ", extent.shard, ", expected one of 0 to ", header_.num_shards - 1));
    }
    const uint64_t element_size = SizeOf(entry.dtype);
    if (element_size == 0 || !entry.slices.empty()) return absl::OkStatus();
    uint64_t expected;
    if (__builtin_mul_overflow(static_cast<uint64_t>(entry.shape.num_elements()), element_size, &expected) ||
        expected != extent.size) {
      return absl::DataLossError(absl::StrCat("of type ", DTypeName(entry.dtype), " and shape ", entry.shape.ToString(),
                                              " has ", extent.size, " bytes, expected ", entry.shape.num_elements(),
                                              " elements of ", element_size));
    }
    return absl::OkStatus();
  }

  static absl::Status FindParts(const VariableInfo& variable, std::vector<TensorSlice> slices,
                                absl::flat_hash_map<std::string, BundleEntry>* entries, std::vector<Part>* parts) {
    int64_t left = variable.shape.num_elements();
    for (TensorSlice& slice : slices) {
      PF_ASSIGN_OR_RETURN(Shape shape, SliceShape(slice, variable.shape));
      const auto entry = entries->find(SliceKey(variable.name, slice));
      if (entry == entries->end()) {
        return absl::DataLossError(
            absl::StrCat("found no entry for its slice ", ToString(slice), ", or two slices that are the same"));
      }
      const BundleEntry found = std::move(entry->second);
      entries->erase(entry);
      if (found.dtype != variable.dtype || found.shape != shape || !found.slices.empty()) {
        return absl::DataLossError(absl::StrCat("the slice ", ToString(slice), " has type ", DTypeName(found.dtype),
                                                " and shape ", found.shape.ToString(), ", expected ",
                                                DTypeName(variable.dtype), " and ", shape.ToString()));
      }
      // Checks that the slices add up to the shape before memory is allocated.
      if (shape.num_elements() > left) return absl::DataLossError("its slices overlap");
      left -= shape.num_elements();
      parts->push_back({std::move(slice), std::move(shape), found.extent});
    }
    if (left > 0) return absl::DataLossError(absl::StrCat("its slices leave out ", left, " elements"));
    return absl::OkStatus();
  }

  template <typename F>
  void ForEachExtent(F f) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].parts.empty()) f(values_[i].extent, i);
      for (const Part& part : values_[i].parts) f(part.extent, i);
    }
  }

  // Opens only the shards that hold values, because the header may declare any number.
  absl::Status OpenShards(FileSystem& files) {
    ForEachExtent([&](const BundleExtent& extent, size_t /*variable*/) { shards_.try_emplace(extent.shard); });
    for (auto& [number, shard] : shards_) {
      shard.path = absl::StrFormat("%s.data-%05d-of-%05d", prefix_, number, header_.num_shards);
      absl::StatusOr<FileView> file = MapBeside(files, shard.path);
      if (!file.ok()) {
        return Annotate(file.status(), absl::StrCat("checkpoint '", prefix_, "' has ", header_.num_shards, " shards"));
      }
      shard.file = *std::move(file);
    }
    return absl::OkStatus();
  }

  // Checks that each value is inside its shard and that no two values overlap, so that memory use is bounded by file
  // size.
  absl::Status CheckExtents() const {
    std::vector<Claim> claims;
    absl::Status outside;
    ForEachExtent([&](const BundleExtent& extent, size_t variable) {
      const Shard& shard = shards_.at(extent.shard);
      const uint64_t size = shard.file.bytes.size();
      if (extent.offset > size || extent.size > size - extent.offset) {
        if (outside.ok()) {
          outside = absl::DataLossError(absl::StrCat(InVariable(list_.variables()[variable].name), " has ", extent.size,
                                                     " bytes at offset ", extent.offset, " of '", shard.path,
                                                     "', which has ", size, " bytes"));
        }
      } else if (extent.size > 0) {
        claims.push_back({&extent, variable});
      }
    });
    if (!outside.ok()) return outside;
    std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
      return std::make_pair(a.extent->shard, a.extent->offset) < std::make_pair(b.extent->shard, b.extent->offset);
    });
    for (size_t i = 1; i < claims.size(); ++i) {
      const BundleExtent& before = *claims[i - 1].extent;
      const BundleExtent& after = *claims[i].extent;
      if (before.shard == after.shard && before.offset + before.size > after.offset) {
        return absl::DataLossError(absl::StrCat("variables '", list_.variables()[claims[i - 1].variable].name,
                                                "' and '", list_.variables()[claims[i].variable].name,
                                                "' share bytes from offset ", after.offset, " of '",
                                                shards_.at(after.shard).path, "'"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> ReadValue(const VariableInfo& variable, const Value& value) const {
    if (SizeOf(variable.dtype) == 0 && variable.dtype != DType::kString) {
      return absl::UnimplementedError(
          absl::StrCat("has type ", DTypeName(variable.dtype), ", whose values cannot be read"));
    }
    if (value.parts.empty()) return ReadExtent(value.extent, variable.dtype, variable.shape);
    PF_ASSIGN_OR_RETURN(SliceAssembler assembler, SliceAssembler::Create(variable.dtype, variable.shape));
    for (const Part& part : value.parts) {
      PF_ASSIGN_OR_RETURN(const Tensor tensor, ReadExtent(part.extent, variable.dtype, part.shape));
      PF_RETURN_IF_ERROR(assembler.Add(part.slice, tensor));
    }
    return assembler.Finish();
  }

  absl::StatusOr<Tensor> ReadExtent(const BundleExtent& extent, DType dtype, const Shape& shape) const {
    const Shard& shard = shards_.at(extent.shard);
    const absl::string_view bytes = shard.file.bytes.substr(extent.offset, extent.size);
    uint32_t crc = 0;
    absl::StatusOr<Tensor> tensor = dtype == DType::kString ? ReadStrings(bytes, shape, &crc)
                                                            : Tensor::FromBytes(dtype, shape, bytes, shard.file.owner);
    if (dtype != DType::kString) crc = ChecksumOf(shard, bytes);
    if (tensor.ok() && MaskCrc32c(crc) != extent.masked_crc) {
      tensor = absl::DataLossError(
          absl::StrFormat("the checksum is 0x%08x, expected 0x%08x", MaskCrc32c(crc), extent.masked_crc));
    }
    if (!tensor.ok()) {
      return Annotate(tensor.status(),
                      absl::StrCat("'", shard.path, "', ", extent.size, " bytes at offset ", extent.offset));
    }
    return header_.is_big_endian && SwappedUnit(dtype) > 1 ? SwapBytes(*tensor) : tensor;
  }

  static uint32_t ChecksumOf(const Shard& shard, absl::string_view bytes) {
    if (shard.file.bytes.size() < kStreamedBytes) return Crc32c(bytes);
    constexpr size_t kPiece = size_t{32} << 20;
    uint32_t crc = 0;
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const absl::string_view piece = bytes.substr(at, kPiece);
      crc = ExtendCrc32c(crc, piece);
      ReleasePages(piece);
    }
    return crc;
  }

  absl::StatusOr<Tensor> ReadStrings(absl::string_view bytes, const Shape& shape, uint32_t* crc) const {
    const auto count = static_cast<uint64_t>(shape.num_elements());
    // A string without characters takes one byte in the file and this many bytes in memory.
    constexpr uint64_t kCost = sizeof(std::string) + sizeof(uint64_t);
    if (count > options_.max_model_bytes / kCost) {
      return absl::ResourceExhaustedError(absl::StrCat("has ", count, " strings, which take more than the ",
                                                       options_.max_model_bytes, " bytes allowed"));
    }
    PF_ASSIGN_OR_RETURN(std::vector<std::string> strings, DecodeStringValues(bytes, count, header_.is_big_endian, crc));
    return Tensor::FromStrings(shape, std::move(strings));
  }

  const std::string prefix_;
  const OpenOptions options_;
  BundleHeader header_;
  VariableList list_;
  std::vector<Value> values_;  // By variable.
  std::map<int32_t, Shard> shards_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VariableSource>> OpenBundle(FileSystem& files, const std::string& prefix,
                                                           const OpenOptions& options) {
  auto bundle = std::make_unique<Bundle>(prefix, options);
  PF_RETURN_IF_ERROR(bundle->Open(files));
  return bundle;
}

}  // namespace permafrost

// Implements the encoding of index records.
#include "tests/formats/checkpoint/checkpoint_encoding.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "graph/base/wire.h"
#include "graph/wire_format/tensor_proto.h"

namespace permafrost {
namespace {

class StringFile : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

}  // namespace

std::string MakeTable(const std::map<std::string, std::string>& entries, const TableStyle& style) {
  StringFile file;
  leveldb::Options options;
  options.compression = style.compress ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  options.block_size = style.block_size;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  builder.Finish();  // Writing to a string cannot fail.
  return file.bytes;
}

std::string EncodeBundleEntry(const EntryFields& fields) {
  std::string entry;
  AppendVarintField(1, static_cast<uint64_t>(fields.dtype), &entry);
  AppendBytesField(2, EncodeShapeProto(fields.shape), &entry);
  AppendVarintField(3, static_cast<uint64_t>(fields.shard), &entry);
  AppendVarintField(4, static_cast<uint64_t>(fields.offset), &entry);
  AppendVarintField(5, static_cast<uint64_t>(fields.size), &entry);
  AppendFixed32Field(6, fields.masked_crc, &entry);
  return entry + fields.slices;
}

std::string EncodeBundleHeader(const HeaderFields& fields) {
  std::string header, version;
  AppendVarintField(1, static_cast<uint64_t>(fields.num_shards), &header);
  AppendVarintField(2, static_cast<uint64_t>(fields.endianness), &header);
  AppendVarintField(1, 1, &version);
  AppendVarintField(2, static_cast<uint64_t>(fields.min_consumer), &version);
  AppendBytesField(3, version, &header);
  return header;
}

}  // namespace permafrost

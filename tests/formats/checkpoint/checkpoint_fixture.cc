// Finds what TensorFlow wrote, and makes up the rest.
#include "tests/formats/checkpoint/checkpoint_fixture.h"

#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "graph/tensor_proto.h"
#include "graph/wire.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef.h"
#include "leveldb/env.h"
#include "tests/shared_models.h"

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

std::string WrittenFile(absl::string_view name) {
  return DataFile(absl::StrCat("tests/formats/checkpoint/written/", name));
}

std::map<std::string, Tensor> RecordedVariables(absl::string_view name) {
  std::map<std::string, Tensor> variables;
  const absl::StatusOr<FileView> file = RealFileSystem().MapFile(WrittenFile(absl::StrCat(name, ".expected.pb")));
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return variables;
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(file->bytes, file->owner);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return variables;
  for (const Node* node = (*graph)->first(); node != nullptr; node = node->next()) {
    const absl::StatusOr<std::string> variable = StringAttr(*node, "_name");
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    EXPECT_TRUE(variable.ok() && value.ok()) << node->name();
    if (variable.ok() && value.ok()) variables[*variable] = *value;
  }
  return variables;
}

std::string NewFolder() {
  std::string pattern = absl::StrCat(::testing::TempDir(), "/checkpoint_XXXXXX");
  EXPECT_NE(mkdtemp(&pattern[0]), nullptr);
  return pattern;
}

void WriteFileForTest(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
}

std::string MakeTable(const std::map<std::string, std::string>& entries, const TableStyle& style) {
  StringFile file;
  leveldb::Options options;
  options.compression = style.compress ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  options.block_size = style.block_size;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  EXPECT_TRUE(builder.Finish().ok());
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

std::string EncodeBundleHeader(int64_t num_shards, int64_t endianness, int64_t min_consumer) {
  std::string header, version;
  AppendVarintField(1, static_cast<uint64_t>(num_shards), &header);
  AppendVarintField(2, static_cast<uint64_t>(endianness), &header);
  AppendVarintField(1, 1, &version);
  AppendVarintField(2, static_cast<uint64_t>(min_consumer), &version);
  AppendBytesField(3, version, &header);
  return header;
}

}  // namespace permafrost

// Tests of the table reader: agreement with LevelDB's writer, and hostile files.
#include "io/formats/checkpoint/sorted_table.h"

#include <snappy.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/wire.h"
#include "gtest/gtest.h"
#include "io/crc32c.h"
#include "io/formats/checkpoint/table_block.h"
#include "tests/formats/checkpoint/checkpoint_encoding.h"

namespace permafrost {
namespace {

using ::testing::HasSubstr;

FileView View(std::string bytes) {
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  return FileView{*kept, kept};
}

std::map<std::string, std::string> AllEntries(const SortedTable& table, absl::Status* status) {
  std::map<std::string, std::string> entries;
  *status = table.ForEach([&](const std::string& key, const FileView& value) {
    EXPECT_TRUE(entries.emplace(key, value.bytes).second);
    return absl::OkStatus();
  });
  return entries;
}

TEST(SortedTable, AgreesWithLevelDb) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::map<std::string, std::string> entries;
    const int count = round == 0 ? 0 : static_cast<int>(random() % 300);
    while (static_cast<int>(entries.size()) < count) {
      std::string key;
      for (int i = static_cast<int>(random() % 20); i >= 0; --i) key.push_back(static_cast<char>(random() % 3 * 127));
      entries[key] = std::string(random() % 200, static_cast<char>(random()));
    }
    TableStyle style;
    style.compress = round % 2 == 1;
    style.block_size = size_t{1} << (4 + random() % 10);
    const absl::StatusOr<SortedTable> table = SortedTable::Open(View(MakeTable(entries, style)));
    ASSERT_TRUE(table.ok()) << table.status();
    absl::Status status;
    EXPECT_EQ(AllEntries(*table, &status), entries);
    EXPECT_TRUE(status.ok()) << status;
    for (const auto& [key, value] : entries) {
      const absl::StatusOr<FileView> found = table->Find(key);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->bytes, value);
      const std::string other = key + '\0';
      EXPECT_EQ(table->Find(other).ok(), entries.count(other) == 1);
    }
    EXPECT_EQ(table->Find("\xff\xff").status().code(), absl::StatusCode::kNotFound);
  }
}

TEST(SortedTable, AValueOutlivesTheTable) {
  FileView value;
  {
    const absl::StatusOr<SortedTable> table =
        SortedTable::Open(View(MakeTable({{"a", std::string(1000, 'x')}}, {/*compress=*/true})));
    value = *table->Find("a");
  }
  EXPECT_EQ(value.bytes, std::string(1000, 'x'));
}

// Builds a table block by block; valid except where a test specifies otherwise.
class Forger {
 public:
  // Encodes an entry with the given lengths.
  static std::string Entry(uint64_t shared, uint64_t own, uint64_t value_size, absl::string_view rest) {
    std::string entry;
    AppendVarint(shared, &entry);
    AppendVarint(own, &entry);
    AppendVarint(value_size, &entry);
    return absl::StrCat(entry, rest);
  }
  static std::string Block(const std::string& entries, uint32_t restarts = 1) {
    return absl::StrCat(entries, Fixed32(0), Fixed32(restarts));
  }
  static std::string Fixed32(uint32_t value) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    return bytes;
  }
  static std::string Handle(uint64_t offset, uint64_t size) {
    std::string handle;
    AppendVarint(offset, &handle);
    AppendVarint(size, &handle);
    return handle;
  }

  // Appends a block with its type and checksum, and returns its handle.
  std::string Add(const std::string& contents, char type = 0) {
    const std::string handle = Handle(file_.size(), contents.size());
    const std::string stored = absl::StrCat(contents, std::string(1, type));
    absl::StrAppend(&file_, stored, Fixed32(MaskCrc32c(Crc32c(stored))));
    return handle;
  }
  std::string Finish(const std::string& list, const std::string& meta = Handle(0, 0)) {
    std::string footer = meta + list;
    footer.resize(40);
    return absl::StrCat(file_, footer, absl::string_view("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8));
  }

 private:
  std::string file_;
};

// Returns a table of one block. `handle` and `key` may replace the block's entry in the list of blocks.
std::string OneBlock(const std::string& contents, char type = 0, std::string handle = "", std::string key = "z") {
  Forger forger;
  const std::string meta = forger.Add(Forger::Block(""));
  const std::string block = forger.Add(contents, type);
  if (handle.empty()) handle = block;
  const std::string list = forger.Add(Forger::Block(Forger::Entry(0, key.size(), handle.size(), key + handle)));
  return forger.Finish(list, meta);
}

absl::Status ReadAllOf(const std::string& file) {
  const absl::StatusOr<SortedTable> table = SortedTable::Open(View(file));
  if (!table.ok()) return table.status();
  absl::Status status;
  AllEntries(*table, &status);
  // A search reports the same error, or none if it does not reach the damage.
  (void)table->Find("a").status();
  return status;
}

void ExpectRefused(const std::string& file, absl::string_view message,
                   absl::StatusCode code = absl::StatusCode::kDataLoss) {
  const absl::Status status = ReadAllOf(file);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(std::string(status.message()), std::string(message));
}

TEST(SortedTable, BuilderMakesValidTables) {
  EXPECT_TRUE(ReadAllOf(OneBlock(Forger::Block(Forger::Entry(0, 1, 2, "avv")))).ok());
}

TEST(SortedTable, HandlesOutsideTheFile) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {kHuge, 1}, {0, kHuge}, {1, kHuge}, {kHuge, kHuge}, {uint64_t{1} << 40, 8}, {0, uint64_t{1} << 40}}) {
    const std::string handle = Forger::Handle(offset, size);
    EXPECT_THAT(std::string(ReadAllOf(OneBlock(Forger::Block(""), 0, handle)).message()),
                HasSubstr(absl::StrCat("found a block of ", size, " bytes at offset ", offset)));
    EXPECT_THAT(std::string(ReadAllOf(Forger().Finish(handle)).message()), HasSubstr("expected one that ends before"));
  }
  ExpectRefused(Forger().Finish("", std::string(11, '\xff')), "offset 0: expected the offset and size of a block");
  ExpectRefused(Forger().Finish("", std::string("\x80\0\0", 3)), "offset 0: expected the offset and size of a block");
}

TEST(SortedTable, AListThatNamesABlockTwice) {
  Forger forger;
  const std::string block = forger.Add(Forger::Block(Forger::Entry(0, 1, 0, "a")));
  const std::string list = forger.Add(Forger::Block(Forger::Entry(0, 1, block.size(), absl::StrCat("b", block)) +
                                                    Forger::Entry(0, 1, block.size(), absl::StrCat("c", block))));
  ExpectRefused(forger.Finish(list, block),
                "offset 17: found a block at offset 0, expected one after the previous block, which ends at 17");
}

TEST(SortedTable, ABlockWithTheWrongType) {
  ExpectRefused(OneBlock(Forger::Block(""), 2),
                "offset 13: found a block with the compression 2, expected 0 (none) or 1 (Snappy)",
                absl::StatusCode::kUnimplemented);
}

TEST(SortedTable, SnappyBlockDeclaresALargeSize) {
  std::string claim;
  AppendVarint(uint64_t{4} << 30, &claim);
  ExpectRefused(OneBlock(claim + "xy", 1), "offset 13: found a Snappy block without its length");
  claim.clear();
  AppendVarint((uint64_t{4} << 30) - 1, &claim);
  ExpectRefused(OneBlock(claim + "xy", 1),
                "offset 13: found a Snappy block of 7 bytes with 4294967295 uncompressed bytes, expected at most 22 "
                "times as much");
  claim.clear();
  AppendVarint(20, &claim);
  ExpectRefused(OneBlock(claim + "xy", 1), "offset 13: found a damaged Snappy block");
}

TEST(SortedTable, MaximumSnappyCompressionIsRead) {
  const std::string contents = Forger::Block(Forger::Entry(0, 1, 1 << 20, "a" + std::string(1 << 20, 'x')));
  std::string compressed;
  snappy::Compress(contents.data(), contents.size(), &compressed);
  EXPECT_GT(contents.size() / compressed.size(), 20u);
  EXPECT_TRUE(ReadAllOf(OneBlock(compressed, 1)).ok());
}

TEST(SortedTable, EntriesThatDoNotFit) {
  using F = Forger;
  ExpectRefused(OneBlock(F::Block(F::Entry(1, 1, 0, "a"))),
                "offset 13: byte 3 of the block: an entry shares 1 bytes with a key of 0");
  ExpectRefused(OneBlock(F::Block(F::Entry(0, 2, 0, "a"))),
                "offset 13: byte 3 of the block: an entry has a key of 2 and a value of 0 bytes, and 1 are left");
  ExpectRefused(
      OneBlock(F::Block(F::Entry(0, 1, 0xffffffff, "a"))),
      "offset 13: byte 7 of the block: an entry has a key of 1 and a value of 4294967295 bytes, and 1 are left");
  ExpectRefused(OneBlock(F::Block(F::Entry(0, uint64_t{1} << 32, 0, "a"))),
                "offset 13: byte 6 of the block: found a length beyond 32 bits");
  ExpectRefused(OneBlock(F::Block(std::string(6, '\xff'))),
                "offset 13: byte 5 of the block: found a length of more than 5 bytes");
  ExpectRefused(OneBlock(F::Block(std::string(2, '\xff'))),
                "offset 13: byte 2 of the block: is truncated within an entry");
  ExpectRefused(OneBlock(F::Block("", 2)), "offset 13: found a block of 8 bytes with 2 restarts of 4");
  ExpectRefused(OneBlock(F::Block("", 0xffffffff)),
                "offset 13: found a block of 8 bytes with 4294967295 restarts of 4");
  ExpectRefused(OneBlock("abc"), "offset 13: found a block of 3 bytes, expected at least 4");
}

TEST(SortedTable, KeysOutOfOrder) {
  using F = Forger;
  ExpectRefused(OneBlock(F::Block(F::Entry(0, 1, 0, "b") + F::Entry(0, 1, 0, "a"))),
                "offset 13: byte 7 of the block: keys are not in order");
  ExpectRefused(OneBlock(F::Block(F::Entry(0, 1, 0, "b") + F::Entry(1, 0, 0, ""))),
                "offset 13: byte 7 of the block: keys are not in order");
  ExpectRefused(OneBlock(F::Block(F::Entry(0, 1, 0, "b")), 0, "", "a"),
                "offset 13: a block has greater keys than its entry in the list of blocks");
}

TEST(SortedTable, KeysThatExceedTheFileSize) {
  // 40000 keys of more than 20000 bytes each, in a file of 300 kB.
  std::string entries = Forger::Entry(0, 20000, 0, std::string(20000, 'k'));
  for (int i = 0; i < 40000; ++i) entries += Forger::Entry(20000 + i, 1, 0, "a");
  ExpectRefused(OneBlock(Forger::Block(entries)), "offset 13: the keys take more than 64 times the size of the file",
                absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace permafrost

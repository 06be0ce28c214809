// Implements reading of tables: footer, index block and data blocks. Layout: docs/formats/checkpoint.md.
#include "io/formats/checkpoint/sorted_table.h"

#include <snappy.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/crc32c.h"
#include "io/formats/checkpoint/table_block.h"
#include "io/little_endian.h"

namespace permafrost {
namespace {

// The first 8 bytes of the SHA-1 of LevelDB's URL, reversed.
constexpr absl::string_view kMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
constexpr size_t kFooterSize = 48;
constexpr size_t kTrailerSize = 5;  // Follows a block: its type and checksum.
enum BlockType : unsigned char { kPlain = 0, kSnappy = 1 };

// Maximum expansion of Snappy: an element of 3 bytes represents at most 64.
constexpr uint64_t kMostSnappyExpansion = 22;

// Limits the total size of keys. A key may share nearly all its bytes with the previous one, so a small file can encode
// many long keys. Real files need less than 20 times their size.
constexpr uint64_t kMostKeyBytesPerFileByte = 64;
constexpr uint64_t kFreeKeyBytes = uint64_t{1} << 20;

class KeyBudget {
 public:
  explicit KeyBudget(absl::string_view file) : left_(file.size() * kMostKeyBytesPerFileByte + kFreeKeyBytes) {}

  absl::Status Take(const std::string& key) {
    if (key.size() > left_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the keys take more than ", kMostKeyBytesPerFileByte, " times the size of the file"));
    }
    left_ -= key.size();
    return absl::OkStatus();
  }

 private:
  uint64_t left_;
};

absl::Status AtOffset(uint64_t offset, const absl::Status& status) {
  return Annotate(status, absl::StrCat("offset ", offset));
}

absl::StatusOr<FileView> Uncompress(absl::string_view compressed) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(compressed.data(), compressed.size(), &size)) {
    return absl::DataLossError("found a Snappy block without its length");
  }
  if (size > compressed.size() * kMostSnappyExpansion) {
    return absl::DataLossError(absl::StrCat("found a Snappy block of ", compressed.size(), " bytes with ", size,
                                            " uncompressed bytes, expected at most ", kMostSnappyExpansion,
                                            " times as much"));
  }
  std::shared_ptr<char[]> buffer(new (std::nothrow) char[size]);
  if (buffer == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for a block of ", size, " bytes"));
  if (!snappy::RawUncompress(compressed.data(), compressed.size(), buffer.get())) {
    return absl::DataLossError("found a damaged Snappy block");
  }
  const absl::string_view contents(buffer.get(), size);
  return FileView{contents, std::move(buffer)};
}

}  // namespace

bool SortedTable::Is(absl::string_view file) { return file.size() >= kFooterSize && absl::EndsWith(file, kMagic); }

absl::StatusOr<SortedTable::BlockHandle> SortedTable::ParseHandle(absl::string_view* bytes) const {
  BlockHandle handle;
  const size_t before = bytes->size();
  bool error = false;
  const bool has_both =
      NextPackedVarint(bytes, &handle.offset, &error) && NextPackedVarint(bytes, &handle.size, &error);
  // Must have the minimal encoding, so that no damage stays undetected.
  if (!has_both || before - bytes->size() != VarintSize(handle.offset) + VarintSize(handle.size)) {
    return absl::DataLossError("expected the offset and size of a block");
  }
  const uint64_t end = file_.bytes.size() - kFooterSize;
  if (handle.offset > end || end - handle.offset < kTrailerSize || handle.size > end - handle.offset - kTrailerSize) {
    return absl::DataLossError(absl::StrCat("found a block of ", handle.size, " bytes at offset ", handle.offset,
                                            ", expected one that ends before offset ", end));
  }
  return handle;
}

absl::StatusOr<FileView> SortedTable::ReadBlock(const BlockHandle& handle) const {
  const absl::string_view stored = file_.bytes.substr(handle.offset, handle.size + 1);  // Includes the type.
  const uint32_t expected = LoadLittleEndian32(stored.data() + stored.size());
  const uint32_t found = MaskCrc32c(Crc32c(stored));
  if (found != expected) {
    return AtOffset(handle.offset,
                    absl::DataLossError(absl::StrFormat("a block of %d bytes has the checksum 0x%08x, expected 0x%08x",
                                                        handle.size, found, expected)));
  }
  const absl::string_view contents = stored.substr(0, handle.size);
  const auto type = static_cast<unsigned char>(stored.back());
  if (type == kPlain) return FileView{contents, file_.owner};
  if (type == kSnappy) {
    absl::StatusOr<FileView> uncompressed = Uncompress(contents);
    if (!uncompressed.ok()) return AtOffset(handle.offset, uncompressed.status());
    return uncompressed;
  }
  return AtOffset(handle.offset, absl::UnimplementedError(absl::StrCat("found a block with the compression ", type,
                                                                       ", expected 0 (none) or 1 (Snappy)")));
}

absl::Status SortedTable::ReadBlockList(const BlockHandle& handle) {
  PF_ASSIGN_OR_RETURN(const FileView contents, ReadBlock(handle));
  absl::StatusOr<TableBlockReader> reader = TableBlockReader::Open(contents.bytes);
  if (!reader.ok()) return AtOffset(handle.offset, reader.status());
  KeyBudget budget(file_.bytes);
  uint64_t end = 0;
  while (reader->Next()) {
    if (absl::Status status = budget.Take(reader->key()); !status.ok()) return AtOffset(handle.offset, status);
    absl::string_view value = reader->value();
    absl::StatusOr<BlockHandle> block = ParseHandle(&value);
    if (!block.ok()) return AtOffset(handle.offset, block.status());
    if (block->offset < end) {
      return AtOffset(handle.offset, absl::DataLossError(
                                         absl::StrCat("found a block at offset ", block->offset,
                                                      ", expected one after the previous block, which ends at ", end)));
    }
    end = block->offset + block->size + kTrailerSize;
    blocks_.push_back({reader->key(), *block});
  }
  return AtOffset(handle.offset, reader->status());
}

absl::StatusOr<SortedTable> SortedTable::Open(FileView file) {
  const size_t size = file.bytes.size();
  if (size < kFooterSize) {
    return absl::DataLossError(absl::StrCat("found ", size, " bytes, expected a table of at least ", kFooterSize));
  }
  if (!Is(file.bytes)) {
    return absl::DataLossError(absl::StrCat("offset ", size - kMagic.size(),
                                            ": found no end mark of a "
                                            "table; the file is truncated or not a checkpoint"));
  }
  SortedTable table(std::move(file));
  const uint64_t footer = size - kFooterSize;
  absl::string_view rest = table.file_.bytes.substr(footer, kFooterSize - kMagic.size());
  absl::StatusOr<BlockHandle> meta = table.ParseHandle(&rest);
  if (!meta.ok()) return AtOffset(footer, meta.status());
  const absl::StatusOr<BlockHandle> list = table.ParseHandle(&rest);
  if (!list.ok()) return AtOffset(footer, list.status());
  if (rest.find_first_not_of('\0') != absl::string_view::npos) {
    return AtOffset(footer, absl::DataLossError("found non-zero bytes after the offsets of the table"));
  }
  // The metadata block is not used, but damage in it indicates a damaged file.
  PF_RETURN_IF_ERROR(table.ReadBlock(*meta).status());
  PF_RETURN_IF_ERROR(table.ReadBlockList(*list));
  return table;
}

absl::Status SortedTable::ForEach(
    absl::FunctionRef<absl::Status(const std::string& key, const FileView& value)> visit) const {
  KeyBudget budget(file_.bytes);
  std::string last_key;
  bool is_first = true;
  for (const Block& block : blocks_) {
    PF_ASSIGN_OR_RETURN(const FileView contents, ReadBlock(block.handle));
    absl::StatusOr<TableBlockReader> reader = TableBlockReader::Open(contents.bytes);
    if (!reader.ok()) return AtOffset(block.handle.offset, reader.status());
    bool is_first_of_block = true;
    while (reader->Next()) {
      const std::string& key = reader->key();
      if (is_first_of_block && !is_first && key <= last_key) {
        return AtOffset(block.handle.offset, absl::DataLossError("keys are not in order"));
      }
      is_first = is_first_of_block = false;
      if (absl::Status status = budget.Take(key); !status.ok()) return AtOffset(block.handle.offset, status);
      PF_RETURN_IF_ERROR(visit(key, FileView{reader->value(), contents.owner}));
    }
    if (!reader->status().ok()) return AtOffset(block.handle.offset, reader->status());
    if (!is_first_of_block) last_key = reader->key();
    if (last_key > block.last_key) {
      return AtOffset(block.handle.offset,
                      absl::DataLossError("a block has greater keys than its entry in the list of blocks"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FileView> SortedTable::Find(absl::string_view key) const {
  const auto block = std::lower_bound(blocks_.begin(), blocks_.end(), key,
                                      [](const Block& a, absl::string_view b) { return a.last_key < b; });
  if (block == blocks_.end()) return absl::NotFoundError("the table has no such key");
  PF_ASSIGN_OR_RETURN(const FileView contents, ReadBlock(block->handle));
  absl::StatusOr<TableBlockReader> reader = TableBlockReader::Open(contents.bytes);
  if (!reader.ok()) return AtOffset(block->handle.offset, reader.status());
  while (reader->Next()) {
    if (reader->key() == key) return FileView{reader->value(), contents.owner};
  }
  if (!reader->status().ok()) return AtOffset(block->handle.offset, reader->status());
  return absl::NotFoundError("the table has no such key");
}

}  // namespace permafrost

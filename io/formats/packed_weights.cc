// Implements the file: a header, a table of entries as a protobuf message, and the aligned entries.
#include "io/formats/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/formats/memmapped_package.h"
#include "io/little_endian.h"

namespace permafrost {
namespace {

constexpr absl::string_view kMagic = "PFPACKED";
constexpr uint64_t kVersion = 1;
// The magic bytes, then words: version, size of the table, size of the file, hash of the table, hash of all preceding
// bytes.
constexpr uint64_t kHeaderBytes = 64;
constexpr int kHashedWords = 4;

enum Field : uint32_t { kModel = 1, kDelegate = 2, kIdentity = 3, kPrecision = 4, kPlan = 5, kEntry = 6 };
enum EntryField : uint32_t { kKey = 1, kOffset = 2, kLength = 3, kHash = 4 };

// Numbers always take eight bytes, so that the size of the table does not depend on the offsets.
void AppendNumber(uint32_t field, uint64_t number, std::string* to) {
  AppendTag(field, WireType::kFixed64, to);
  AppendLittleEndian64(number, to);
}

std::string Table(const PackedMaker& maker, absl::Span<const PackedPiece> pieces,
                  absl::Span<const PackedEntry> entries) {
  std::string table;
  AppendBytesField(kModel, maker.model, &table);
  AppendBytesField(kDelegate, maker.delegate, &table);
  AppendBytesField(kIdentity, maker.identity, &table);
  AppendBytesField(kPrecision, maker.precision, &table);
  AppendBytesField(kPlan, maker.plan, &table);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const PackedEntry entry = entries.empty() ? PackedEntry() : entries[i];
    std::string text;
    AppendBytesField(kKey, pieces[i].key, &text);
    AppendNumber(kOffset, entry.offset, &text);
    AppendNumber(kLength, entry.length, &text);
    AppendNumber(kHash, entry.hash, &text);
    AppendBytesField(kEntry, text, &table);
  }
  return table;
}

// Returns the positions of the entries after a table of `table_bytes` bytes, and the total size in *end.
std::vector<PackedEntry> Placed(absl::Span<const PackedPiece> pieces, uint64_t table_bytes, uint64_t* end) {
  std::vector<PackedEntry> entries;
  *end = kHeaderBytes + table_bytes;
  for (const PackedPiece& piece : pieces) {
    const uint64_t offset = AlignUp(*end, kPackedAlignment);
    entries.push_back({piece.key, offset, piece.bytes.size(), 0});
    *end = offset + piece.bytes.size();
  }
  return entries;
}

}  // namespace

const PackedEntry* PackedWeightsFile::Find(absl::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &entries_[found->second];
}

FileView PackedWeightsFile::Bytes(const PackedEntry& entry) const {
  return {file_.bytes.substr(entry.offset, entry.length), file_.owner};
}

absl::Status PackedWeightsFile::Check(const PackedEntry& entry) const {
  if (HashContent(Bytes(entry).bytes) == entry.hash) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the entry at byte ", entry.offset, " is damaged"));
}

absl::Status PackedWeightsFile::ReadTable(absl::string_view table) {
  const uint64_t begin = kHeaderBytes + table.size();
  WireReader reader(table, kHeaderBytes);
  WireField field;
  while (reader.Next(&field)) {
    if (field.type != WireType::kLengthDelimited) continue;
    switch (field.number) {
      case kModel:
        maker_.model = std::string(field.bytes);
        break;
      case kDelegate:
        maker_.delegate = std::string(field.bytes);
        break;
      case kIdentity:
        maker_.identity = std::string(field.bytes);
        break;
      case kPrecision:
        maker_.precision = std::string(field.bytes);
        break;
      case kPlan:
        maker_.plan = std::string(field.bytes);
        break;
      case kEntry: {
        PackedEntry entry;
        PF_RETURN_IF_ERROR(ForEachField(field.bytes, [&](const WireField& part) {
          if (part.number == kKey && part.type == WireType::kLengthDelimited) entry.key = part.bytes;
          if (part.type == WireType::kFixed64) {
            if (part.number == kOffset) entry.offset = part.value;
            if (part.number == kLength) entry.length = part.value;
            if (part.number == kHash) entry.hash = part.value;
          }
          return absl::OkStatus();
        }));
        const uint64_t least = entries_.empty() ? begin : entries_.back().offset + entries_.back().length;
        const uint64_t size = file_.bytes.size();
        if (entry.length == 0 || entry.offset % kPackedAlignment != 0 || entry.offset < least || entry.offset > size ||
            entry.length > size - entry.offset) {
          return absl::DataLossError(absl::StrCat("entry ", entries_.size(), " has ", entry.length, " bytes at byte ",
                                                  entry.offset, ", expected them after byte ", least,
                                                  ", at a multiple of ", kPackedAlignment, " and within ", size));
        }
        if (!by_key_.try_emplace(entry.key, entries_.size()).second) {
          return absl::DataLossError(absl::StrCat("entry ", entries_.size(), " has a duplicate key"));
        }
        entries_.push_back(entry);
        break;
      }
      default:
        break;  // Unknown fields, written by later versions.
    }
  }
  return reader.status();
}

absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> OpenPackedWeights(FileView view) {
  auto file = std::make_shared<PackedWeightsFile>();
  file->file_ = std::move(view);
  const absl::string_view bytes = file->file_.bytes;
  if (!absl::StartsWith(bytes, kMagic)) {
    return absl::InvalidArgumentError(absl::StrCat("found no '", kMagic, "' at the start, expected packed weights"));
  }
  if (bytes.size() < kHeaderBytes) {
    return absl::DataLossError(absl::StrCat("found ", bytes.size(), " bytes, expected at least ", kHeaderBytes));
  }
  const auto word = [&](int i) { return LoadLittleEndian64(bytes.data() + kMagic.size() + 8 * i); };
  if (word(0) != kVersion) {
    return absl::UnimplementedError(absl::StrCat("found version ", word(0), ", expected ", kVersion));
  }
  if (HashContent(bytes.substr(0, kMagic.size() + 8 * kHashedWords)) != word(kHashedWords)) {
    return absl::DataLossError("the header is damaged");
  }
  if (word(2) != bytes.size()) {
    return absl::DataLossError(absl::StrCat("found ", bytes.size(), " bytes, expected ", word(2)));
  }
  if (word(1) > bytes.size() - kHeaderBytes) {
    return absl::DataLossError(absl::StrCat("the table has ", word(1), " bytes, more than the file"));
  }
  const absl::string_view table = bytes.substr(kHeaderBytes, word(1));
  if (HashContent(table) != word(3)) return absl::DataLossError("the table is damaged");
  PF_RETURN_IF_ERROR(Annotate(file->ReadTable(table), "the table"));
  return std::shared_ptr<const PackedWeightsFile>(std::move(file));
}

absl::Status WritePackedWeights(const PackedMaker& maker, absl::Span<const PackedPiece> pieces, ByteSink* sink) {
  uint64_t end;
  std::vector<PackedEntry> entries = Placed(pieces, Table(maker, pieces, {}).size(), &end);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].bytes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the entry '", pieces[i].key, "' has no bytes"));
    }
    entries[i].hash = HashContent(pieces[i].bytes);
  }
  const std::string table = Table(maker, pieces, entries);
  std::string header(kMagic);
  for (const uint64_t word : {kVersion, static_cast<uint64_t>(table.size()), end, HashContent(table)}) {
    AppendLittleEndian64(word, &header);
  }
  AppendLittleEndian64(HashContent(header), &header);
  header.resize(kHeaderBytes, '\0');
  PF_RETURN_IF_ERROR(sink->Append(header));
  PF_RETURN_IF_ERROR(sink->Append(table));
  uint64_t written = kHeaderBytes + table.size();
  for (size_t i = 0; i < pieces.size(); ++i) {
    static constexpr char kZeros[kPackedAlignment] = {};
    const uint64_t padding = entries[i].offset - written;
    if (padding > 0) PF_RETURN_IF_ERROR(sink->Append(absl::string_view(kZeros, padding)));
    PF_RETURN_IF_ERROR(sink->Append(pieces[i].bytes));
    written = entries[i].offset + entries[i].length;
  }
  return absl::OkStatus();
}

uint64_t PackedWeightsSize(const PackedMaker& maker, absl::Span<const PackedPiece> pieces) {
  uint64_t end;
  Placed(pieces, Table(maker, pieces, {}).size(), &end);
  return end;
}

}  // namespace permafrost

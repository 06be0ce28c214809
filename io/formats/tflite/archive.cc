// Implements the reading of ZIP archives (APPNOTE 4.3) without extensions, and their change of place.
#include "io/formats/tflite/archive.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/gzip.h"

namespace permafrost {
namespace {

constexpr absl::string_view kLocalMagic("PK\3\4", 4), kEntryMagic("PK\1\2", 4), kEndMagic("PK\5\6", 4);
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr size_t kMostComment = 0xffff;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kVersion = 20;   // 2.0, the version of deflated files.
constexpr uint16_t kDate = 0x21;    // 1 January 1980, the earliest. Archives do not depend on the clock.
constexpr uint16_t kEncrypted = 1;  // Bit of the flags.

uint16_t Read16(absl::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1]) << 8);
}

uint32_t Read32(absl::string_view bytes, size_t at) {
  return Read16(bytes, at) | static_cast<uint32_t>(Read16(bytes, at + 2)) << 16;
}

void Write16(uint32_t value, std::string* bytes) {
  bytes->push_back(static_cast<char>(value & 0xff));
  bytes->push_back(static_cast<char>(value >> 8 & 0xff));
}

void Write32(uint32_t value, std::string* bytes) {
  Write16(value & 0xffff, bytes);
  Write16(value >> 16, bytes);
}

void Set32(uint32_t value, size_t at, std::string* bytes) {
  for (int i = 0; i < 4; ++i) (*bytes)[at + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * i) & 0xff);
}

// Returns the position of the record at the end, or npos.
size_t FindEnd(absl::string_view file) {
  const size_t first = file.size() - std::min(file.size(), kEndBytes + kMostComment);
  for (size_t at = file.size(); at-- > first;) {
    if (file.size() - at < kEndBytes || file.substr(at, kEndMagic.size()) != kEndMagic) continue;
    if (at + kEndBytes + Read16(file, at + 20) == file.size()) return at;
  }
  return absl::string_view::npos;
}

absl::Status Damaged(absl::string_view problem) {
  return absl::DataLossError(absl::StrCat("the archive at the end is damaged: ", problem));
}

}  // namespace

absl::StatusOr<Archive> FindArchive(absl::string_view file) {
  Archive archive;
  archive.start = archive.directory = file.size();
  const size_t end = FindEnd(file);
  if (end == absl::string_view::npos) return archive;
  const uint32_t count = Read16(file, end + 10);
  const uint64_t directory_bytes = Read32(file, end + 12), directory_offset = Read32(file, end + 16);
  if (directory_bytes > end || directory_offset > end - directory_bytes) {
    return Damaged(absl::StrCat("found a directory of ", directory_bytes, " bytes at ", directory_offset,
                                ", expected it before byte ", end));
  }
  archive.directory = end - directory_bytes;
  // Bytes before the archive, if offsets count from its start.
  const uint64_t base = archive.directory - directory_offset;
  archive.counts_from_file = base == 0;
  archive.start = archive.directory;
  uint64_t at = archive.directory;
  for (uint32_t i = 0; i < count; ++i) {
    if (end - at < kEntryBytes || file.substr(at, kEntryMagic.size()) != kEntryMagic) {
      return Damaged(absl::StrCat("found ", i, " entries, expected ", count));
    }
    const uint64_t name_bytes = Read16(file, at + 28);
    const uint64_t entry_bytes = kEntryBytes + name_bytes + Read16(file, at + 30) + Read16(file, at + 32);
    if (entry_bytes > end - at) return Damaged(absl::StrCat("entry ", i, " exceeds the directory"));
    ArchiveEntry entry;
    entry.name = std::string(file.substr(at + kEntryBytes, name_bytes));
    entry.method = Read16(file, at + 10);
    entry.crc = Read32(file, at + 16);
    entry.packed_bytes = Read32(file, at + 20);
    entry.bytes = Read32(file, at + 24);
    entry.header_at = base + Read32(file, at + 42);
    const bool is_encrypted = (Read16(file, at + 8) & kEncrypted) != 0;
    const std::string place = absl::StrCat("'", absl::CEscape(entry.name), "' ");
    if (entry.header_at > archive.directory || archive.directory - entry.header_at < kLocalBytes ||
        file.substr(entry.header_at, kLocalMagic.size()) != kLocalMagic) {
      return Damaged(absl::StrCat(place, "has no header at byte ", entry.header_at));
    }
    entry.data_at =
        entry.header_at + kLocalBytes + Read16(file, entry.header_at + 26) + Read16(file, entry.header_at + 28);
    if (entry.data_at > archive.directory || entry.packed_bytes > archive.directory - entry.data_at) {
      return Damaged(absl::StrCat(place, "has ", entry.packed_bytes, " bytes, expected at most what precedes the ",
                                  "directory at byte ", archive.directory));
    }
    if (is_encrypted) entry.method = 0xffff;
    archive.start = std::min(archive.start, entry.header_at);
    archive.entries.push_back(std::move(entry));
    at += entry_bytes;
  }
  // Files do not overlap: many entries with the same content would expand without bound.
  std::vector<const ArchiveEntry*> sorted;
  for (const ArchiveEntry& entry : archive.entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const ArchiveEntry* a, const ArchiveEntry* b) { return a->header_at < b->header_at; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1]->data_at + sorted[i - 1]->packed_bytes > sorted[i]->header_at) {
      return Damaged(absl::StrCat("'", absl::CEscape(sorted[i]->name), "' overlaps another file"));
    }
  }
  return archive;
}

absl::StatusOr<std::string> ReadEntry(absl::string_view file, const ArchiveEntry& entry, uint64_t max_bytes) {
  const std::string place = absl::StrCat("'", absl::CEscape(entry.name), "' in the archive");
  if (entry.bytes > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(place, " has ", entry.bytes, " bytes, expected at most ", max_bytes));
  }
  if (entry.data_at > file.size() || entry.packed_bytes > file.size() - entry.data_at) {
    return absl::DataLossError(absl::StrCat(place, " leaves the file"));
  }
  const absl::string_view packed = file.substr(entry.data_at, entry.packed_bytes);
  std::string bytes;
  if (entry.method == kStored) {
    bytes = std::string(packed);
  } else if (entry.method == kDeflated) {
    absl::StatusOr<std::string> inflated = InflateRaw(packed, entry.bytes);
    PF_RETURN_IF_ERROR(Annotate(inflated.status(), place));
    bytes = *std::move(inflated);
  } else {
    return absl::UnimplementedError(
        absl::StrCat(place, " is compressed with method ", entry.method, " or encrypted, expected 0 or 8"));
  }
  if (bytes.size() != entry.bytes || ZipChecksum(bytes) != entry.crc) {
    return absl::DataLossError(absl::StrCat(place, " is damaged: size or checksum differ"));
  }
  return bytes;
}

std::string MovedArchive(absl::string_view bytes, uint64_t from, uint64_t to) {
  std::string moved(bytes);
  const size_t end = FindEnd(bytes);
  if (end == absl::string_view::npos) return moved;
  const uint64_t directory_bytes = Read32(bytes, end + 12), directory_offset = Read32(bytes, end + 16);
  // Offsets from the start of the file lead to the directory if `from` precedes the archive.
  if (directory_bytes > end || directory_offset + directory_bytes != from + end) return moved;
  const auto shifted = [&](uint32_t offset) { return static_cast<uint32_t>(offset - from + to); };
  Set32(shifted(static_cast<uint32_t>(directory_offset)), end + 16, &moved);
  for (size_t at = end - directory_bytes; at + kEntryBytes <= end && bytes.substr(at, 4) == kEntryMagic;) {
    Set32(shifted(Read32(bytes, at + 42)), at + 42, &moved);
    at += kEntryBytes + Read16(bytes, at + 28) + Read16(bytes, at + 30) + Read16(bytes, at + 32);
  }
  return moved;
}

absl::StatusOr<std::string> MakeArchive(const std::vector<std::pair<std::string, std::string>>& files) {
  constexpr size_t kMost16 = 0xffff, kMost32 = 0xffffffff;
  if (files.size() > kMost16) {
    return absl::InvalidArgumentError(absl::StrCat("found ", files.size(), " files, expected at most ", kMost16));
  }
  std::string archive, directory;
  for (const auto& [name, content] : files) {
    if (name.empty() || name.size() > kMost16 || content.size() > kMost32 - archive.size() - kMost16) {
      return absl::InvalidArgumentError(absl::StrCat("'", absl::CEscape(name), "' does not fit an archive"));
    }
    const size_t at = archive.size();
    const auto write_header = [&](std::string* out) {
      Write16(kVersion, out);
      Write16(0, out);  // Flags.
      Write16(kStored, out);
      Write16(0, out);  // Time.
      Write16(kDate, out);
      Write32(ZipChecksum(content), out);
      Write32(static_cast<uint32_t>(content.size()), out);
      Write32(static_cast<uint32_t>(content.size()), out);
      Write16(static_cast<uint32_t>(name.size()), out);
      Write16(0, out);  // Extra fields.
    };
    archive.append(kLocalMagic.data(), kLocalMagic.size());
    write_header(&archive);
    archive += name;
    archive += content;
    directory.append(kEntryMagic.data(), kEntryMagic.size());
    Write16(kVersion, &directory);
    write_header(&directory);
    Write16(0, &directory);  // Comment.
    Write16(0, &directory);  // Disk.
    Write16(0, &directory);  // Internal attributes.
    Write32(0, &directory);  // External attributes.
    Write32(static_cast<uint32_t>(at), &directory);
    directory += name;
  }
  const size_t at = archive.size();
  archive += directory;
  archive.append(kEndMagic.data(), kEndMagic.size());
  Write32(0, &archive);  // Disks.
  Write16(static_cast<uint32_t>(files.size()), &archive);
  Write16(static_cast<uint32_t>(files.size()), &archive);
  Write32(static_cast<uint32_t>(directory.size()), &archive);
  Write32(static_cast<uint32_t>(at), &archive);
  Write16(0, &archive);  // Comment.
  return archive;
}

}  // namespace permafrost

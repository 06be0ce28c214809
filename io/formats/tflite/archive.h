// The ZIP archive that may follow a TensorFlow Lite model: files with labels and vocabularies.
//
// An archive is found from the end of the file. Offsets in it count from the start of the file or of the archive.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_ARCHIVE_H_
#define PERMAFROST_IO_FORMATS_TFLITE_ARCHIVE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// One file of an archive, without its content.
struct ArchiveEntry {
  std::string name;
  uint16_t method = 0;  // 0: stored; 8: deflated.
  uint32_t crc = 0, packed_bytes = 0, bytes = 0;
  uint64_t data_at = 0;    // Of the packed bytes, in the file.
  uint64_t header_at = 0;  // Of the local header.
};

// The archive at the end of a file.
struct Archive {
  uint64_t start = 0;             // Of the first local header, in the file.
  uint64_t directory = 0;         // Of the central directory.
  bool counts_from_file = false;  // Offsets count from the start of the file, not of the archive.
  std::vector<ArchiveEntry> entries;
};

// Returns the archive at the end of `file`; one without entries and with `start` equal to the size of the file if there
// is none. Returns DataLoss for an archive whose directory is damaged, leaves the file or has parts that overlap.
absl::StatusOr<Archive> FindArchive(absl::string_view file);

// Returns the content of an entry. Returns ResourceExhausted if it exceeds `max_bytes`, DataLoss if it is damaged,
// Unimplemented for a method other than stored and deflated.
absl::StatusOr<std::string> ReadEntry(absl::string_view file, const ArchiveEntry& entry, uint64_t max_bytes);

// Returns the bytes of an archive that started at `from` in its file and will start at `to` in another one. Offsets
// that count from the start of the file are changed. `bytes` is returned as it is if it holds no archive.
std::string MovedArchive(absl::string_view bytes, uint64_t from, uint64_t to);

// Returns an archive of stored files, with offsets from its own start. Returns InvalidArgument for more than 65,535
// files, and for names and contents that exceed the fields of the format.
absl::StatusOr<std::string> MakeArchive(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_ARCHIVE_H_

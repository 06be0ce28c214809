// Implements decoding of the strings of a variable.
#include "io/formats/checkpoint/string_values.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/wire.h"
#include "io/crc32c.h"

namespace permafrost {
namespace {

// Returns the number in the byte order of the machine that wrote it.
std::string InMemory(uint64_t value, int size, bool is_big_endian) {
  std::string bytes(static_cast<size_t>(size), '\0');
  for (int i = 0; i < size; ++i) bytes[is_big_endian ? size - 1 - i : i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DecodeStringValues(absl::string_view bytes, uint64_t count, bool is_big_endian,
                                                            uint32_t* crc) {
  constexpr size_t kChecksumSize = 4;
  // Each length takes at least one byte, so the size of the vector is bounded by that of the file.
  if (bytes.size() < kChecksumSize || bytes.size() - kChecksumSize < count) {
    return absl::DataLossError(
        absl::StrCat("found ", bytes.size(), " bytes, expected ", count, " strings and a checksum"));
  }
  std::vector<uint64_t> lengths;
  lengths.reserve(count);
  absl::string_view rest = bytes;
  *crc = 0;
  bool error = false;
  uint64_t length = 0;
  while (lengths.size() < count && NextPackedVarint(&rest, &length, &error)) {
    const int size = length <= std::numeric_limits<uint32_t>::max() ? 4 : 8;
    *crc = ExtendCrc32c(*crc, InMemory(length, size, is_big_endian));
    lengths.push_back(length);
  }
  if (lengths.size() != count || rest.size() < kChecksumSize) {
    return absl::DataLossError(absl::StrCat("the bytes are truncated within the lengths of ", count, " strings"));
  }
  const uint32_t expected = MaskCrc32c(*crc);
  const absl::string_view checksum = rest.substr(0, kChecksumSize);
  if (checksum != InMemory(expected, kChecksumSize, is_big_endian)) {
    return absl::DataLossError(
        absl::StrFormat("byte %d: the lengths of the strings have the checksum 0x%08x, which is "
                        "not the checksum stored after them",
                        bytes.size() - rest.size(), expected));
  }
  *crc = ExtendCrc32c(*crc, checksum);
  rest.remove_prefix(kChecksumSize);
  *crc = ExtendCrc32c(*crc, rest);
  std::vector<std::string> strings;
  strings.reserve(count);
  for (const uint64_t size : lengths) {
    if (size > rest.size()) {
      return absl::DataLossError(absl::StrCat("byte ", bytes.size() - rest.size(), ": found ", rest.size(),
                                              " bytes, expected a string of ", size));
    }
    strings.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  if (!rest.empty()) {
    return absl::DataLossError(
        absl::StrCat("byte ", bytes.size() - rest.size(), ": found ", rest.size(), " bytes after the last string"));
  }
  return strings;
}

}  // namespace permafrost

// Implements reading of the entries of a block. Layout: docs/formats/checkpoint.md.
#include "io/formats/checkpoint/table_block.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "io/little_endian.h"

namespace permafrost {

absl::StatusOr<TableBlockReader> TableBlockReader::Open(absl::string_view contents) {
  constexpr size_t kNumberSize = 4;
  if (contents.size() < kNumberSize) {
    return absl::DataLossError(
        absl::StrCat("found a block of ", contents.size(), " bytes, expected at least ", kNumberSize));
  }
  const uint64_t restarts = LoadLittleEndian32(contents.data() + contents.size() - kNumberSize);
  const uint64_t list_size = (restarts + 1) * kNumberSize;
  if (list_size > contents.size()) {
    return absl::DataLossError(
        absl::StrCat("found a block of ", contents.size(), " bytes with ", restarts, " restarts of ", kNumberSize));
  }
  return TableBlockReader(contents.data(), contents.data() + contents.size() - list_size);
}

bool TableBlockReader::Fail(absl::string_view what) {
  status_ = absl::DataLossError(absl::StrCat("byte ", at_ - begin_, " of the block: ", what));
  at_ = end_;
  return false;
}

bool TableBlockReader::ReadLength(uint32_t* length) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (at_ == end_) return Fail("is truncated within an entry");
    const auto byte = static_cast<unsigned char>(*at_++);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      *length = static_cast<uint32_t>(value);
      return value >> 32 == 0 || Fail("found a length beyond 32 bits");
    }
  }
  return Fail("found a length of more than 5 bytes");
}

bool TableBlockReader::Next() {
  if (at_ == end_) return false;
  const bool is_first = at_ == begin_;
  uint32_t shared, own, value_size;
  if (!ReadLength(&shared) || !ReadLength(&own) || !ReadLength(&value_size)) return false;
  if (shared > key_.size()) {
    return Fail(absl::StrCat("an entry shares ", shared, " bytes with a key of ", key_.size()));
  }
  const size_t left = static_cast<size_t>(end_ - at_);
  if (own > left || value_size > left - own) {
    return Fail(
        absl::StrCat("an entry has a key of ", own, " and a value of ", value_size, " bytes, and ", left, " are left"));
  }
  const absl::string_view tail(at_, own);
  if (!is_first && tail <= absl::string_view(key_).substr(shared)) return Fail("keys are not in order");
  key_.resize(shared);
  key_.append(tail.data(), tail.size());
  value_ = absl::string_view(at_ + own, value_size);
  at_ += own + value_size;
  return true;
}

}  // namespace permafrost

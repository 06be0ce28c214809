// Implements bounded reading and writing of the protobuf wire format. Reference: the encoding page of the protocol
// buffers documentation.
#include "graph/base/wire.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// The largest length that protobuf's parser accepts: 2^31 - 1 less the 16 bytes that it reads ahead.
constexpr uint64_t kMaxLength = 0x7fffffff - 16;

constexpr size_t kMaxVarintSize = 10;

// Writes `value` at `to` and returns the address after it.
char* PutVarint(uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

}  // namespace

bool WireReader::Fail(absl::string_view what) {
  status_ = absl::DataLossError(absl::StrCat("offset ", base_ + offset(), ": ", what));
  at_ = end_;
  return false;
}

bool WireReader::ReadVarint(uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ == end_) return Fail("the message is truncated within a number");
    const uint8_t byte = static_cast<uint8_t>(*at_++);
    if (shift < 64) result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      *value = result;
      return true;
    }
  }
  return Fail("a number is longer than 10 bytes");
}

bool WireReader::ReadTag(uint32_t* number, WireType* type) {
  // As in protobuf, a tag has at most 5 bytes, and bits beyond the lower 32 are dropped.
  const char* start = at_;
  uint64_t tag = 0;
  for (int shift = 0;; shift += 7) {
    if (at_ == end_) return Fail("the message is truncated within a field's tag");
    if (shift == 35) {
      at_ = start;
      return Fail("a field's tag is longer than 5 bytes");
    }
    const uint8_t byte = static_cast<uint8_t>(*at_++);
    tag |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  *number = static_cast<uint32_t>(tag) >> 3;
  *type = static_cast<WireType>(tag & 7);
  if (*number != 0) return true;
  at_ = start;
  return Fail("a field has number 0, expected 1 or more");
}

bool WireReader::ReadBytes(uint32_t number, absl::string_view* bytes) {
  const char* start = at_;
  uint64_t length;
  if (!ReadVarint(&length)) return false;
  const uint64_t left = static_cast<uint64_t>(end_ - at_);
  if (length > left) {
    return Fail(absl::StrCat("field ", number, " has a length of ", length, " bytes, but only ", left, " are left"));
  }
  if (at_ - start > 5 || length > kMaxLength) {
    at_ = start;
    return Fail(absl::StrCat("the length of field ", number, " is longer than 5 bytes or 2 GiB"));
  }
  *bytes = absl::string_view(at_, length);
  at_ += length;
  return true;
}

bool WireReader::SkipGroup(uint32_t number, WireField* field) {
  // Open groups, innermost last.
  if (max_group_depth_ < 1) return Fail("messages and groups are nested more than 100 deep");
  std::vector<uint32_t> open = {number};
  const char* content = at_;
  while (!open.empty()) {
    if (at_ == end_) return Fail("the message is truncated within a group");
    const char* tag_at = at_;
    uint32_t inner;
    WireType type;
    if (!ReadTag(&inner, &type)) return false;
    if (type == WireType::kStartGroup) {
      if (open.size() >= static_cast<size_t>(max_group_depth_)) {
        return Fail("messages and groups are nested more than 100 deep");
      }
      open.push_back(inner);
    } else if (type == WireType::kEndGroup) {
      if (inner != open.back()) return Fail("the end of a group does not match its start");
      open.pop_back();
      if (open.empty()) field->bytes = absl::string_view(content, static_cast<size_t>(tag_at - content));
    } else if (!ReadValue(inner, type, field)) {
      return false;
    }
  }
  field->value = 0;
  return true;
}

bool WireReader::ReadValue(uint32_t number, WireType type, WireField* field) {
  switch (type) {
    case WireType::kVarint:
      return ReadVarint(&field->value);
    case WireType::kFixed64:
      if (end_ - at_ < 8) return Fail("the message is truncated within a fixed 64-bit field");
      std::memcpy(&field->value, at_, 8);
      at_ += 8;
      return true;
    case WireType::kFixed32: {
      if (end_ - at_ < 4) return Fail("the message is truncated within a fixed 32-bit field");
      uint32_t bits;
      std::memcpy(&bits, at_, 4);
      field->value = bits;
      at_ += 4;
      return true;
    }
    case WireType::kLengthDelimited:
      return ReadBytes(number, &field->bytes);
    case WireType::kStartGroup:
      return SkipGroup(number, field);
    case WireType::kEndGroup:
      return Fail("found the end of a group that was not started");
  }
  return Fail(absl::StrCat("wire type ", static_cast<int>(type), " does not exist"));
}

bool WireReader::NextOfAnySize(WireField* field) {
  if (at_ == end_) return false;
  const char* start = at_;
  if (!ReadTag(&field->number, &field->type)) return false;
  field->value = 0;
  field->bytes = {};
  if (!ReadValue(field->number, field->type, field)) return false;
  field->whole = absl::string_view(start, static_cast<size_t>(at_ - start));
  return true;
}

bool NextPackedVarint(absl::string_view* list, uint64_t* value, bool* error) {
  if (list->empty() || *error) return false;
  uint64_t result = 0;
  for (size_t i = 0; i < 10; ++i) {
    if (i == list->size()) break;
    const uint8_t byte = static_cast<uint8_t>((*list)[i]);
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      list->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  *error = true;
  return false;
}

void AppendVarint(uint64_t value, std::string* out) {
  char encoded[kMaxVarintSize];
  out->append(encoded, static_cast<size_t>(PutVarint(value, encoded) - encoded));
}

void AppendTag(uint32_t number, WireType type, std::string* out) {
  AppendVarint((static_cast<uint64_t>(number) << 3) | static_cast<uint8_t>(type), out);
}

void AppendVarintField(uint32_t number, uint64_t value, std::string* out) {
  AppendTag(number, WireType::kVarint, out);
  AppendVarint(value, out);
}

void AppendFixed32Field(uint32_t number, uint32_t bits, std::string* out) {
  AppendTag(number, WireType::kFixed32, out);
  char raw[4];
  std::memcpy(raw, &bits, 4);
  out->append(raw, 4);
}

void AppendBytesField(uint32_t number, absl::string_view bytes, std::string* out) {
  AppendLengthPrefix(number, bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

void AppendLengthPrefix(uint32_t number, uint64_t length, std::string* out) {
  char encoded[2 * kMaxVarintSize];
  char* end =
      PutVarint((static_cast<uint64_t>(number) << 3) | static_cast<uint8_t>(WireType::kLengthDelimited), encoded);
  end = PutVarint(length, end);
  out->append(encoded, static_cast<size_t>(end - encoded));
}

}  // namespace permafrost

// Bounded reading and streaming writing of the protobuf wire format (varints, tags, length-delimited fields).
//
// Every read is checked against the end of the enclosing message, so a corrupt length never leads to a read outside it.
#ifndef PERMAFROST_GRAPH_BASE_WIRE_H_
#define PERMAFROST_GRAPH_BASE_WIRE_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// One field as encoded in the file.
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;       // kVarint, kFixed64, kFixed32: the raw bits.
  absl::string_view bytes;  // kLengthDelimited: the payload. kStartGroup: the content, without the end tag.
  absl::string_view whole;  // The field with its tag, for preserving unknown fields.
};

// Protobuf's limit on nested messages and groups, not counting the outermost message.
inline constexpr int kMaxWireDepth = 100;

// Iterates over the fields of one message. Does not own the bytes. Accepts exactly the tags, numbers and lengths that
// protobuf's own parser accepts.
class WireReader {
 public:
  // `base` is the offset of the message in its file; `max_group_depth` is the part of kMaxWireDepth that remains inside
  // it.
  explicit WireReader(absl::string_view message, size_t base = 0, int max_group_depth = kMaxWireDepth)
      : begin_(message.data()),
        at_(begin_),
        end_(begin_ + message.size()),
        base_(base),
        max_group_depth_(max_group_depth) {}

  // Reads the next field into *field and returns true. Returns false at the end of the message and on an error;
  // status() distinguishes the two. A group, which older protobuf files may contain as an unknown field, is read as one
  // field.
  bool Next(WireField* field) { return NextShort(field) || NextOfAnySize(field); }

  // DataLoss with the offset from the start of the message plus `base`: truncated field, bad tag, length beyond the
  // end.
  const absl::Status& status() const { return status_; }

  // Number of bytes from the start of the message to the next unread one.
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }

 private:
  // Reads the common kinds of field: a tag of one byte, followed by a varint or a length of one or two bytes. Returns
  // false, without changes, for any other field.
  bool NextShort(WireField* field) {
    const size_t left = static_cast<size_t>(end_ - at_);
    if (left < 2) return false;
    const auto byte = [this](int i) { return static_cast<uint8_t>(at_[i]); };
    if (byte(0) < (1 << 3) || byte(0) >= 0x80) return false;
    const WireType type = static_cast<WireType>(byte(0) & 7);
    size_t size;  // Size of the tag and the number or length, in bytes.
    uint64_t value = byte(1);
    if (value < 0x80) {
      size = 2;
    } else if (left >= 3 && byte(2) < 0x80) {
      size = 3;
      value = (value & 0x7f) | uint64_t{byte(2)} << 7;
    } else {
      return false;
    }
    if (type == WireType::kVarint) {
      field->value = value;
      field->bytes = {};
    } else if (type == WireType::kLengthDelimited && value <= left - size) {
      field->value = 0;
      field->bytes = absl::string_view(at_ + size, value);
      size += value;
    } else {
      return false;
    }
    field->number = byte(0) >> 3;
    field->type = type;
    field->whole = absl::string_view(at_, size);
    at_ += size;
    return true;
  }
  bool NextOfAnySize(WireField* field);
  bool Fail(absl::string_view what);
  bool ReadVarint(uint64_t* value);
  bool ReadTag(uint32_t* number, WireType* type);
  bool ReadBytes(uint32_t number, absl::string_view* bytes);
  bool ReadValue(uint32_t number, WireType type, WireField* field);
  bool SkipGroup(uint32_t number, WireField* field);

  const char* begin_;
  const char* at_;
  const char* end_;
  size_t base_;
  int max_group_depth_;
  absl::Status status_;
};

// Reads the next varint of a packed list. Returns false at the end of the list or on an error. Sets *error, and never
// clears it, if the list is truncated within a varint.
bool NextPackedVarint(absl::string_view* list, uint64_t* value, bool* error);

// Calls f(field), which returns a Status, for each field of `message`, and stops at the first error. Returns DataLoss
// for a malformed message.
template <typename F>
absl::Status ForEachField(absl::string_view message, F f) {
  WireReader reader(message);
  WireField field;
  while (reader.Next(&field)) {
    if (absl::Status status = f(field); !status.ok()) return status;
  }
  return reader.status();
}

// True if `field` has this number and a payload: a message, a text or bytes.
inline bool IsMessage(const WireField& field, uint32_t number) {
  return field.number == number && field.type == WireType::kLengthDelimited;
}

// Destination of encoded bytes: a file, a string or a counter. Large payloads are passed as views, so that unchanged
// weights go from the mapped input to the output without a copy in memory.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // `bytes` need to stay valid only during the call. After an error, the caller must not append more.
  virtual absl::Status Append(absl::string_view bytes) = 0;
};

// Collects all bytes in a string.
class StringSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view bytes) override {
    text_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  const std::string& text() const { return text_; }
  std::string Release() { return std::move(text_); }

 private:
  std::string text_;
};

// Append encoded fields to a string. Meant for small fields; large payloads go to the sink directly.
void AppendVarint(uint64_t value, std::string* out);
void AppendTag(uint32_t number, WireType type, std::string* out);
void AppendVarintField(uint32_t number, uint64_t value, std::string* out);
void AppendFixed32Field(uint32_t number, uint32_t bits, std::string* out);
void AppendBytesField(uint32_t number, absl::string_view bytes, std::string* out);
// Appends tag and length of a length-delimited field. The caller writes the payload next.
void AppendLengthPrefix(uint32_t number, uint64_t length, std::string* out);

inline size_t VarintSize(uint64_t value) {
  const int last_bit = 63 - __builtin_clzll(value | 1);
  return static_cast<size_t>(last_bit / 7 + 1);
}
// Returns the size in bytes of a length-delimited field: tag, length and payload.
inline size_t BytesFieldSize(uint32_t number, uint64_t payload) {
  return VarintSize(static_cast<uint64_t>(number) << 3) + VarintSize(payload) + payload;
}

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_WIRE_H_

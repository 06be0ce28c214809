// Tests of the wire format: accepts what protobuf accepts, and never reads outside the message.
#include "graph/base/wire.h"

#include <string>

#include "gtest/gtest.h"

namespace permafrost {
namespace {

using namespace std::string_literals;

absl::Status ReadAll(absl::string_view bytes, WireField* last) {
  WireReader reader(bytes);
  while (reader.Next(last)) continue;
  return reader.status();
}

TEST(WireTest, WhatIsWrittenIsRead) {
  std::string bytes;
  AppendVarintField(1, UINT64_MAX, &bytes);
  AppendFixed32Field(2, 0x01020304, &bytes);
  AppendBytesField(1000, "abc", &bytes);
  WireReader reader(bytes);
  WireField field;
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_EQ(field.value, UINT64_MAX);
  EXPECT_EQ(field.whole.size(), 11u);
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_EQ(field.value, 0x01020304u);
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_EQ(field.number, 1000u);
  EXPECT_EQ(field.bytes, "abc");
  EXPECT_EQ(field.whole.size(), BytesFieldSize(1000, 3));
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_TRUE(reader.status().ok());
}

// Short fields (one-byte tags, short numbers or lengths), at the end of the message and beyond it.
TEST(WireTest, ShortFields) {
  WireField field;
  const std::string number = "\x08\x05";
  EXPECT_TRUE(ReadAll(number, &field).ok());
  EXPECT_EQ(field.number, 1u);
  EXPECT_EQ(field.value, 5u);
  EXPECT_EQ(field.whole, number);
  EXPECT_TRUE(field.bytes.empty());
  EXPECT_TRUE(ReadAll("\x78\x85\x01"s, &field).ok());
  EXPECT_EQ(field.number, 15u);
  EXPECT_EQ(field.value, 133u);
  EXPECT_EQ(field.whole.size(), 3u);
  EXPECT_TRUE(ReadAll("\x12\x00"s, &field).ok());
  EXPECT_EQ(field.value, 0u);
  EXPECT_TRUE(field.bytes.empty());
  const std::string payload(300, 'x');
  const std::string message = "\x12\xac\x02" + payload;
  EXPECT_TRUE(ReadAll(message, &field).ok());
  EXPECT_EQ(field.number, 2u);
  EXPECT_EQ(field.bytes, payload);
  for (const std::string& truncated :
       {"\x08"s, "\x08\x85"s, "\x12"s, "\x12\x01"s, "\x12\xac"s, "\x12\xac\x02"s, "\x12\xac\x02" + payload.substr(1)}) {
    EXPECT_EQ(ReadAll(truncated, &field).code(), absl::StatusCode::kDataLoss) << truncated;
  }
  for (const std::string& broken : {"\x00\x01"s, "\x02\x00"s, "\x0e\x01"s, "\x0c\x01"s}) {
    EXPECT_EQ(ReadAll(broken, &field).code(), absl::StatusCode::kDataLoss) << broken;
  }
}

TEST(WireTest, VarintsOfTenBytes) {
  WireField field;
  // As protobuf, accepts ten bytes with any bits beyond the 64th, and padding zeros.
  EXPECT_TRUE(ReadAll("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, &field).ok());
  EXPECT_EQ(field.value, UINT64_MAX);
  EXPECT_TRUE(ReadAll("\x08\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00"s, &field).ok());
  EXPECT_EQ(field.value, 5u);
  EXPECT_FALSE(ReadAll("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s, &field).ok());
  absl::string_view packed = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07";
  uint64_t value;
  bool error = false;
  EXPECT_TRUE(NextPackedVarint(&packed, &value, &error));
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_TRUE(NextPackedVarint(&packed, &value, &error));
  EXPECT_EQ(value, 7u);
  EXPECT_FALSE(NextPackedVarint(&packed, &value, &error));
  EXPECT_FALSE(error);
  packed = "\x80";
  EXPECT_FALSE(NextPackedVarint(&packed, &value, &error));
  EXPECT_TRUE(error);
}

TEST(WireTest, EveryTruncationIsAnError) {
  std::string bytes;
  AppendFixed32Field(2, 1, &bytes);
  for (size_t size = 1; size < bytes.size(); ++size) {
    WireField field;
    EXPECT_EQ(ReadAll(absl::string_view(bytes).substr(0, size), &field).code(), absl::StatusCode::kDataLoss);
  }
  for (const std::string& bad : {"\x08"s, "\x08\x80"s, "\x0a\x05"s + "abc", "\x09\x01"s, "\x00"s, "\x0c"s, "\x0e"s,
                                 "\x0b\x08"s, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s}) {
    WireField field;
    EXPECT_FALSE(ReadAll(bad, &field).ok()) << testing::PrintToString(bad);
  }
}

TEST(WireTest, GroupsAreOneFieldAndBounded) {
  WireField field;
  const std::string group = "\x0b\x10\x05\x0c";  // The field is a view of it.
  ASSERT_TRUE(ReadAll(group, &field).ok());
  EXPECT_EQ(field.type, WireType::kStartGroup);
  EXPECT_EQ(field.bytes, "\x10\x05"s);
  EXPECT_FALSE(ReadAll("\x0b\x14"s, &field).ok());  // Ended by another number.
  EXPECT_TRUE(ReadAll(std::string(100, '\x0b') + std::string(100, '\x0c'), &field).ok());
  EXPECT_FALSE(ReadAll(std::string(100000, '\x0b') + std::string(100000, '\x0c'), &field).ok());
}

}  // namespace
}  // namespace permafrost

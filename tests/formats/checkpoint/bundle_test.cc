// Tests of bundles that no writer produces although their checksums are correct, and of big-endian bundles.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "graph/base/wire.h"
#include "gtest/gtest.h"
#include "io/crc32c.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "io/formats/checkpoint/tensor_slice.h"
#include "tests/formats/checkpoint/checkpoint_encoding.h"
#include "tests/io/memory_file_system.h"

namespace permafrost {
namespace {

using ::testing::HasSubstr;

// Encodes a TensorSliceProto as field 7 of an entry.
std::string SliceField(const TensorSlice& slice) {
  std::string encoded, field;
  for (const SliceExtent& extent : slice) {
    std::string piece;
    if (extent.start != 0) AppendVarintField(1, static_cast<uint64_t>(extent.start), &piece);
    if (extent.length != SliceExtent::kAll) AppendVarintField(2, static_cast<uint64_t>(extent.length), &piece);
    AppendBytesField(1, piece, &encoded);
  }
  AppendBytesField(7, encoded, &field);
  return field;
}

// A bundle with one shard of 64 bytes, to which tests add entries.
class Bundle : public ::testing::Test {
 protected:
  Bundle() {
    for (int i = 0; i < 64; ++i) shard_.push_back(static_cast<char>(i));
    index_[""] = EncodeBundleHeader({});
  }

  // Returns a float vector of `count` elements in the shard, with the correct checksum.
  EntryFields Floats(int64_t count, int64_t offset) const {
    EntryFields entry;
    entry.shape = Shape({count});
    entry.offset = offset;
    entry.size = count * 4;
    if (offset >= 0 && count >= 0 && offset + count * 4 <= 64) {
      entry.masked_crc = MaskCrc32c(Crc32c(absl::string_view(shard_).substr(offset, count * 4)));
    }
    return entry;
  }
  void Add(const std::string& name, const EntryFields& entry) { index_[name] = EncodeBundleEntry(entry); }

  absl::StatusOr<std::unique_ptr<VariableSource>> Open(const OpenOptions& options = {}) {
    MemoryFileSystem files({{"m.index", MakeTable(index_)}, {"m.data-00000-of-00001", shard_}});
    return OpenCheckpoint(files, "m", options);
  }
  void ExpectRefused(absl::string_view message, absl::StatusCode code = absl::StatusCode::kDataLoss) {
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(std::string(status.message()), std::string(message));
  }
  absl::Status ReadStatus(absl::string_view name, const OpenOptions& options = {}) {
    const auto source = Open(options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->Read(name).status() : source.status();
  }

  std::string shard_;
  std::map<std::string, std::string> index_;
};

TEST_F(Bundle, ValidBundle) {
  Add("w", Floats(4, 8));
  const auto source = Open();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Read("w")->bytes(), shard_.substr(8, 16));
}

TEST_F(Bundle, Headers) {
  index_[""] = EncodeBundleHeader({0});
  ExpectRefused("'m.index': header: found 0 shards, expected at least 1");
  index_[""] = EncodeBundleHeader({-1});
  ExpectRefused("'m.index': header: found -1 shards, expected at least 1");
  index_[""] = EncodeBundleHeader({1, 2});
  ExpectRefused("'m.index': header: found the byte order 2, expected 0 (little-endian) or 1 (big-endian)");
  index_[""] = EncodeBundleHeader({1, 0, 2});
  ExpectRefused(
      "'m.index': header: the checkpoint requires a reader of version 2 or later, but this reader has version 1",
      absl::StatusCode::kFailedPrecondition);
  std::string bad_consumers, version;
  AppendVarintField(3, 1, &bad_consumers);
  AppendVarintField(1, 1, &version);
  AppendBytesField(3, bad_consumers, &version);
  index_[""] = version;
  ExpectRefused("'m.index': header: the checkpoint excludes readers of version 1",
                absl::StatusCode::kFailedPrecondition);
  index_.erase("");
  ExpectRefused("'m.index': found no header, expected the index of a checkpoint");
  Add("w", Floats(1, 0));
  ExpectRefused("'m.index': found no header, expected the index of a checkpoint");
}

TEST_F(Bundle, HeadersWithManyShards) {
  index_[""] = EncodeBundleHeader({0x7fffffff});
  EXPECT_TRUE(Open().ok());
  Add("w", Floats(1, 0));
  ExpectRefused(
      "checkpoint 'm' has 2147483647 shards: cannot open 'm.data-00000-of-2147483647': No such file or directory",
      absl::StatusCode::kNotFound);
}

TEST_F(Bundle, OffsetsOutsideTheShard) {
  Add("w", Floats(4, 52));
  ExpectRefused("'m.index': variable 'w' has 16 bytes at offset 52 of 'm.data-00000-of-00001', which has 64 bytes");
  Add("w", Floats(4, -1));
  ExpectRefused(
      "'m.index': variable 'w' has 16 bytes at offset 18446744073709551615 of 'm.data-00000-of-00001', which "
      "has 64 bytes");
  EntryFields entry = Floats(4, 0);
  entry.shard = 1;
  Add("w", entry);
  ExpectRefused("'m.index': variable 'w': is in shard 1, expected one of 0 to 0");
  entry.shard = -1;
  Add("w", entry);
  ExpectRefused("'m.index': variable 'w': is in shard -1, expected one of 0 to 0");
}

TEST_F(Bundle, SizesThatDoNotFitTheShape) {
  EntryFields entry = Floats(4, 0);
  entry.size = 15;
  Add("w", entry);
  ExpectRefused("'m.index': variable 'w': of type float and shape [4] has 15 bytes, expected 4 elements of 4");
  entry.shape = Shape({int64_t{1} << 61});
  entry.size = 0;
  Add("w", entry);
  ExpectRefused(
      "'m.index': variable 'w': of type float and shape [2305843009213693952] has 0 bytes, expected "
      "2305843009213693952 elements of 4");
  entry.shape = Shape({int64_t{1} << 62, 4});
  Add("w", entry);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kInvalidArgument);
  entry.shape = Shape({-1});
  Add("w", entry);
  ExpectRefused("'m.index': variable 'w': found the shape [?], expected a known one");
}

TEST_F(Bundle, VariablesThatShareBytes) {
  Add("a", Floats(4, 0));
  Add("b", Floats(4, 16));
  EXPECT_TRUE(Open().ok());
  Add("c", Floats(2, 12));
  ExpectRefused("'m.index': variables 'a' and 'c' share bytes from offset 12 of 'm.data-00000-of-00001'");
}

TEST_F(Bundle, AWrongChecksumIsNamed) {
  EntryFields entry = Floats(4, 8);
  const uint32_t right = entry.masked_crc;
  entry.masked_crc ^= 1;
  Add("w", entry);
  const absl::Status status = ReadStatus("w");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), absl::StrFormat("checkpoint 'm': variable 'w': 'm.data-00000-of-00001', 16 bytes at "
                                              "offset 8: the checksum is 0x%08x, expected 0x%08x",
                                              right, right ^ 1));
}

TEST_F(Bundle, TypesWithoutValuesAreListedAndNotRead) {
  constexpr int32_t kFloat8 = 24, kResource = 20;
  for (const int32_t dtype : {kFloat8, kResource}) {
    EntryFields entry = Floats(4, 0);
    entry.dtype = dtype;
    Add("w", entry);
    EXPECT_EQ(ReadStatus("w").code(), absl::StatusCode::kUnimplemented);
  }
  EXPECT_EQ(ReadStatus("w").message(), "checkpoint 'm': variable 'w': has type resource, whose values cannot be read");
}

TEST_F(Bundle, Strings) {
  EntryFields entry;
  entry.dtype = static_cast<int32_t>(DType::kString);
  entry.shape = Shape({2});
  entry.size = 64;
  Add("s", entry);
  EXPECT_THAT(std::string(ReadStatus("s").message()),
              HasSubstr("byte 2: the lengths of the strings have the checksum"));
  entry.shape = Shape({61});
  Add("s", entry);
  EXPECT_THAT(std::string(ReadStatus("s").message()), HasSubstr("found 64 bytes, expected 61 strings and a checksum"));
  entry.shape = Shape({int64_t{1} << 62});
  Add("s", entry);
  EXPECT_EQ(ReadStatus("s").code(), absl::StatusCode::kResourceExhausted);
  entry.shape = Shape({20});
  Add("s", entry);
  OpenOptions options;
  options.max_model_bytes = 100;
  EXPECT_EQ(ReadStatus("s", options).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(Bundle, SlicesThatDoNotCoverTheVariable) {
  const TensorSlice first = {{0, 4}}, second = {{4, 4}}, overlapping = {{3, 4}}, outside = {{5, 4}};
  EntryFields whole;
  whole.shape = Shape({8});
  Add(SliceKey("w", first), Floats(4, 0));
  Add(SliceKey("w", second), Floats(4, 16));
  Add(SliceKey("w", overlapping), Floats(4, 32));
  Add(SliceKey("w", outside), Floats(4, 48));
  const auto with = [&](const std::vector<TensorSlice>& slices) {
    whole.slices.clear();
    for (const TensorSlice& slice : slices) whole.slices += SliceField(slice);
    Add("w", whole);
  };
  with({second, first});
  EXPECT_EQ((*Open())->Read("w")->bytes(), shard_.substr(0, 32));
  with({first});
  ExpectRefused("'m.index': variable 'w': its slices leave out 4 elements");
  with({first, second, overlapping});
  ExpectRefused("'m.index': variable 'w': its slices overlap");
  with({first, first});
  ExpectRefused("'m.index': variable 'w': found no entry for its slice [0+4], or two slices that are the same");
  with({first, outside});
  ExpectRefused("'m.index': variable 'w': found the slice [5+4] of a variable of shape [8]");
  with({first, {{0, 4}, {0, 1}}});
  ExpectRefused("'m.index': variable 'w': found the slice [0+4, 0+1] of a variable of shape [8]");
  with({first, {{4, 3}}});
  ExpectRefused("'m.index': variable 'w': found no entry for its slice [4+3], or two slices that are the same");
  with({first, overlapping});
  EXPECT_EQ(ReadStatus("w").message(), "checkpoint 'm': variable 'w': the slice [3+4] overlaps another slice");
  whole.shape = Shape({int64_t{1} << 50});
  with({first, second});
  ExpectRefused("'m.index': variable 'w': its slices leave out 1125899906842616 elements");
  EntryFields doubles = Floats(4, 16);
  doubles.shape = Shape({2});
  doubles.dtype = static_cast<int32_t>(DType::kDouble);
  whole.shape = Shape({8});
  Add(SliceKey("w", second), doubles);
  with({first, second});
  ExpectRefused("'m.index': variable 'w': the slice [4+4] has type double and shape [2], expected float and [4]");
}

TEST_F(Bundle, MalformedEntries) {
  index_["w"] = "\x0a";
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("'m.index': variable 'w': offset 1"));
  index_["w"] = "";
  ExpectRefused("'m.index': variable 'w': has no type");
}

TEST_F(Bundle, BigEndian) {
  index_[""] = EncodeBundleHeader({1, 1});
  shard_ = std::string("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8);
  Add("w", Floats(2, 0));
  // Two strings: "a" and an empty one. In checksums, lengths count in the writer's byte order, which is big-endian
  // here.
  const uint32_t lengths = Crc32c(std::string("\0\0\0\1\0\0\0\0", 8));
  const uint32_t masked = MaskCrc32c(lengths);
  std::string checksum;
  for (int i = 3; i >= 0; --i) checksum.push_back(static_cast<char>(masked >> (8 * i)));
  EntryFields strings;
  strings.dtype = static_cast<int32_t>(DType::kString);
  strings.shape = Shape({2});
  strings.offset = 8;
  strings.size = 7;
  strings.masked_crc = MaskCrc32c(ExtendCrc32c(lengths, checksum + "a"));
  shard_ += std::string("\1\0", 2) + checksum + "a";
  Add("s", strings);
  EntryFields complex;
  complex.dtype = static_cast<int32_t>(DType::kComplex64);
  complex.shape = Shape({1});
  complex.offset = 15;
  complex.size = 8;
  complex.masked_crc = MaskCrc32c(Crc32c(shard_.substr(0, 8)));
  shard_ += shard_.substr(0, 8);
  Add("z", complex);
  const auto source = Open();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_TRUE(*(*source)->Read("w") == Tensor::FromVector(Shape({2}), std::vector<float>{1, -2}));
  const absl::StatusOr<Tensor> text = (*source)->Read("s");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(*text == Tensor::FromStrings(Shape({2}), {"a", ""}));
  EXPECT_TRUE(*(*source)->Read("z") == Tensor::FromVector(Shape({1}), std::vector<std::complex<float>>{{1, -2}}));
}

TEST_F(Bundle, AHundredThousandVariablesAndSlices) {
  constexpr int kCount = 100000;
  shard_.assign(kCount * 4, '\0');
  EntryFields whole;
  whole.shape = Shape({kCount / 2});
  for (int i = 0; i < kCount / 2; ++i) {
    EntryFields entry = Floats(1, i * 4);
    entry.masked_crc = MaskCrc32c(Crc32c(shard_.substr(0, 4)));
    Add(absl::StrCat("v", i), entry);
    const TensorSlice slice = {{i, 1}};
    entry.offset = (kCount / 2 + i) * 4;
    Add(SliceKey("w", slice), entry);
    whole.slices += SliceField(slice);
  }
  Add("w", whole);
  const auto source = Open();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->variables().size(), static_cast<size_t>(kCount / 2 + 1));
  EXPECT_TRUE((*source)->Read("w").ok());
  EXPECT_TRUE((*source)->Read("v777").ok());
}

}  // namespace
}  // namespace permafrost

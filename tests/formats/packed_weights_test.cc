// Tests of packed weights in a file: they are restored unchanged, and any damage is detected.
#include "io/formats/packed_weights.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/content_hash.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

// Returns a copy, so that sanitizers detect reads beyond the end.
FileView ViewOf(absl::string_view bytes) {
  auto kept = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  const absl::string_view view(kept->data(), kept->size());
  return {view, std::move(kept)};
}

PackedMaker SomeMaker() { return {"model", "onednn", "version 1", "bf16", std::string("a\0b", 3)}; }

std::string SomeFile() {
  StringSink sink;
  const std::string large(100, 'x');
  EXPECT_TRUE(WritePackedWeights(SomeMaker(), {{"first", "1"}, {"second", large}, {"third", "33"}}, &sink).ok());
  EXPECT_EQ(sink.text().size(), PackedWeightsSize(SomeMaker(), {{"first", "1"}, {"second", large}, {"third", "33"}}));
  return sink.Release();
}

// Reads everything. Returns true if no damage was detected.
bool IsWhole(absl::string_view bytes) {
  const auto file = OpenPackedWeights(ViewOf(bytes));
  if (!file.ok()) return false;
  bool is_whole = (*file)->entries().size() == 3;
  for (const PackedEntry& entry : (*file)->entries()) is_whole = (*file)->Check(entry).ok() && is_whole;
  return is_whole;
}

TEST(PackedWeightsTest, RoundTrips) {
  const auto file = OpenPackedWeights(ViewOf(SomeFile()));
  ASSERT_TRUE(file.ok()) << file.status();
  const PackedMaker& maker = (*file)->maker();
  EXPECT_EQ(maker.model, "model");
  EXPECT_EQ(maker.delegate, "onednn");
  EXPECT_EQ(maker.identity, "version 1");
  EXPECT_EQ(maker.precision, "bf16");
  EXPECT_EQ(maker.plan, std::string("a\0b", 3));
  ASSERT_EQ((*file)->entries().size(), 3u);
  const PackedEntry* second = (*file)->Find("second");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ((*file)->Bytes(*second).bytes, std::string(100, 'x'));
  EXPECT_EQ((*file)->Find("fourth"), nullptr);
  for (const PackedEntry& entry : (*file)->entries()) {
    EXPECT_EQ(entry.offset % kPackedAlignment, 0u);
    EXPECT_TRUE((*file)->Check(entry).ok());
  }
}

TEST(PackedWeightsTest, AFileWithoutEntriesIsValid) {
  StringSink sink;
  ASSERT_TRUE(WritePackedWeights(SomeMaker(), {}, &sink).ok());
  const auto file = OpenPackedWeights(ViewOf(sink.text()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->entries().empty());
}

TEST(PackedWeightsTest, EveryTruncationIsDetected) {
  const std::string bytes = SomeFile();
  ASSERT_TRUE(IsWhole(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(IsWhole(bytes.substr(0, size))) << size;
  EXPECT_FALSE(IsWhole(bytes + "x"));
}

TEST(PackedWeightsTest, EverySignificantBitIsChecked) {
  const std::string bytes = SomeFile();
  const auto file = OpenPackedWeights(ViewOf(bytes));
  ASSERT_TRUE(file.ok());
  // Padding: after the words of the header and before entries.
  std::set<size_t> padding;
  for (size_t i = 48; i < 64; ++i) padding.insert(i);
  size_t end = (*file)->entries()[0].offset;
  while (bytes[end - 1] == 0) padding.insert(--end);
  for (const PackedEntry& entry : (*file)->entries()) {
    for (size_t i = entry.offset + entry.length; i < bytes.size() && i % kPackedAlignment != 0; ++i) padding.insert(i);
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_TRUE(!IsWhole(damaged) || padding.count(i) > 0) << "byte " << i;
    }
  }
}

// A table whose hash is correct but whose entries are invalid.
TEST(PackedWeightsTest, InvalidEntriesAreRejected) {
  const auto patched = [](size_t entry, uint64_t offset, uint64_t length) {
    std::string bytes = SomeFile();
    const auto file = OpenPackedWeights(ViewOf(bytes));
    const PackedEntry& old = (*file)->entries()[entry];
    const auto replace = [&](uint64_t from, uint64_t to) {
      std::string text(8, '\0'), wanted(8, '\0');
      for (int i = 0; i < 8; ++i)
        text[i] = static_cast<char>(from >> (8 * i)), wanted[i] = static_cast<char>(to >> (8 * i));
      const size_t key = bytes.find(std::string((*file)->entries()[entry].key));
      bytes.replace(bytes.find(text, key), 8, wanted);
    };
    replace(old.offset, offset);
    replace(old.length, length);
    // Updates the hashes of table and header, as a writer would.
    const auto word = [&](size_t at) {
      uint64_t value = 0;
      for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
      return value;
    };
    const auto put = [&](size_t at, uint64_t value) {
      for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
    };
    put(32, HashContent(absl::string_view(bytes).substr(64, word(16))));
    put(40, HashContent(absl::string_view(bytes).substr(0, 40)));
    return std::string(OpenPackedWeights(ViewOf(bytes)).status().message());
  };
  const auto file = OpenPackedWeights(ViewOf(SomeFile()));
  const uint64_t offset = (*file)->entries()[1].offset;
  EXPECT_EQ(patched(1, offset, 100), "");
  EXPECT_THAT(patched(1, offset, 0), HasSubstr("entry 1 has 0 bytes"));
  EXPECT_THAT(patched(1, offset + 1, 99), HasSubstr("multiple of 64"));
  EXPECT_THAT(patched(1, offset, uint64_t{1} << 63), HasSubstr("expected them after"));
  EXPECT_THAT(patched(1, ~uint64_t{63}, 100), HasSubstr("expected them after"));
  EXPECT_THAT(patched(1, 0, 64), HasSubstr("expected them after"));
  EXPECT_THAT(patched(2, offset, 2), HasSubstr("entry 2"));
}

TEST(PackedWeightsTest, OtherFilesAndVersionsAreNamed) {
  EXPECT_THAT(OpenPackedWeights(ViewOf("a model")).status().message(), HasSubstr("expected packed weights"));
  EXPECT_THAT(OpenPackedWeights(ViewOf("")).status().message(), HasSubstr("expected packed weights"));
  std::string bytes = SomeFile();
  bytes[8] = 2;
  const absl::Status status = OpenPackedWeights(ViewOf(bytes)).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("found version 2, expected 1"));
}

TEST(PackedWeightsTest, EmptyEntriesAreRejected) {
  StringSink sink;
  EXPECT_TRUE(absl::IsInvalidArgument(WritePackedWeights(SomeMaker(), {{"empty", ""}}, &sink)));
}

// The hash is part of the format and must never change.
TEST(ContentHashTest, ValuesAreStable) {
  std::string bytes;
  std::set<uint64_t> seen;
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(seen.insert(HashContent(bytes)).second) << i;
    bytes.push_back('\0');
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = bytes;
      other[i] = static_cast<char>(1 << bit);
      EXPECT_TRUE(seen.insert(HashContent(other)).second) << i << " " << bit;
    }
  }
  std::string text;
  for (int i = 0; i < 1000; ++i) text.push_back(static_cast<char>(i * 7));
  EXPECT_EQ(absl::StrCat(absl::Hex(HashContent(text))), "cd032282954a8b3d");
}

}  // namespace
}  // namespace permafrost

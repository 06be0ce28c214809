// Tests that a damaged encrypted file either opens with its original content or does not open.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/model_file.h"
#include "tests/formats/age/file_builder.h"

namespace permafrost::age {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// A GraphDef with one node, 'n', a NoOp.
constexpr absl::string_view kModel("\x0a\x09\x0a\x01n\x12\x04NoOp", 11);

absl::Status ReadAsModel(const std::string& file) {
  OpenOptions options;
  options.keys = KeysInMemory(kTestIdentity);
  auto kept = std::make_shared<const std::string>(file);
  return ReadModel(FileView{*kept, kept}, options).status();
}

TEST(AgeDamage, EveryFlippedBitOfAFileIsDetected) {
  const std::string file = FileOf("frozen");
  ASSERT_TRUE(Decrypt(file).ok());
  for (size_t byte = 0; byte < file.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[byte] = static_cast<char>(changed[byte] ^ (1 << bit));
      EXPECT_FALSE(Decrypt(changed).ok()) << "byte " << byte << ", bit " << bit;
    }
  }
}

TEST(AgeDamage, EveryChangedByteOfAHeaderIsRejected) {
  const std::string file = FileOf("frozen");
  for (size_t byte = 0; byte < file.size(); ++byte) {
    for (const char other : {'\0', '\n', '\r', ' ', '-', 'A', '=', '\xff'}) {
      if (file[byte] == other) continue;
      std::string changed = file;
      changed[byte] = other;
      EXPECT_FALSE(Decrypt(changed).ok()) << "byte " << byte << " as " << static_cast<int>(other);
      std::string inserted = file;
      inserted.insert(byte, 1, other);
      EXPECT_FALSE(Decrypt(inserted).ok()) << static_cast<int>(other) << " before byte " << byte;
    }
    std::string without = file;
    without.erase(byte, 1);
    EXPECT_FALSE(Decrypt(without).ok()) << "without byte " << byte;
  }
}

TEST(AgeDamage, OnlyWhiteSpaceAroundArmourMayChange) {
  const std::string file = Armored(FileOf("frozen"));
  ASSERT_TRUE(Decrypt(file).ok());
  for (size_t byte = 0; byte < file.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[byte] = static_cast<char>(changed[byte] ^ (1 << bit));
      const absl::StatusOr<std::string> plain = Decrypt(changed);
      if (plain.ok()) {
        EXPECT_EQ(byte + 1, file.size());
        EXPECT_EQ(*plain, "frozen");
      }
    }
  }
}

TEST(AgeDamage, ATruncatedFileIsRejectedAsAModel) {
  const std::string file = FileOf(kModel);
  ASSERT_TRUE(ReadAsModel(file).ok()) << ReadAsModel(file);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ReadAsModel(file.substr(0, size)).ok()) << size;
    EXPECT_FALSE(Decrypt(file.substr(0, size)).ok()) << size;
    EXPECT_FALSE(ReadAsModel(Armored(file).substr(0, size)).ok()) << size;
  }
  for (size_t byte = 0; byte < file.size(); ++byte) {
    std::string changed = file;
    changed[byte] = static_cast<char>(changed[byte] ^ 1);
    EXPECT_FALSE(ReadAsModel(changed).ok()) << byte;
  }
}

// A file of 200 kB: three chunks and a partial one.
class AgeChunkDamageTest : public ::testing::Test {
 protected:
  static constexpr size_t kChunks = 4;
  AgeChunkDamageTest()
      : plain_(Noise(200000)), file_(FileOf(plain_)), start_(file_.size() - PayloadBytes(200000) + 16) {}

  size_t Begin(size_t chunk) const { return start_ + chunk * kSealedChunkBytes; }
  std::string Chunk(size_t chunk) const { return file_.substr(Begin(chunk), kSealedChunkBytes); }
  std::string With(const std::vector<size_t>& order) const {
    std::string file = file_.substr(0, start_);
    for (const size_t chunk : order) file += Chunk(chunk);
    return file;
  }

  const std::string plain_, file_;
  const size_t start_;  // Offset of the first chunk.
};

TEST_F(AgeChunkDamageTest, TruncationIsDetectedOnOpening) {
  ASSERT_TRUE(Open(file_).ok());
  for (size_t chunk = 0; chunk < kChunks; ++chunk) {
    for (const int off : {-17, -16, -1, 0, 1, 15, 16, 17, 18}) {
      const size_t size = Begin(chunk) + static_cast<size_t>(off);
      const absl::Status status = Open(file_.substr(0, size)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size << ": " << status;
      EXPECT_THAT(std::string(status.message()), AnyOf(HasSubstr("truncated"), HasSubstr("the file ends"))) << size;
    }
  }
}

TEST_F(AgeChunkDamageTest, MovedChunksAreRejected) {
  EXPECT_TRUE(*Decrypt(With({0, 1, 2, 3})) == plain_);
  std::vector<size_t> orders[] = {{1, 0, 2, 3}, {0, 2, 1, 3}, {0, 1, 3, 2}, {0, 1, 3},       {1, 2, 3},
                                  {3},          {0, 0, 2, 3}, {0, 1, 1, 3}, {0, 1, 2, 2, 3}, {0, 1, 2, 3, 3}};
  for (const std::vector<size_t>& order : orders) {
    const absl::Status status = Decrypt(With(order)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << ::testing::PrintToString(order);
  }
}

TEST_F(AgeChunkDamageTest, TheMessageNamesTheFirstBadChunk) {
  std::string file = file_;
  for (const size_t chunk : {2u, 1u}) {
    file[Begin(chunk) + 100] ^= 1;
    const absl::Status status = Decrypt(file).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("chunk ", chunk + 1, " of 4, byte ", Begin(chunk), ": ")),
                      HasSubstr("not authentic")));
  }
}

TEST_F(AgeChunkDamageTest, OtherChunksCanStillBeRead) {
  std::string file = file_;
  file[Begin(2)] ^= 1;
  const std::shared_ptr<const ByteSource> source = *Open(file);
  EXPECT_TRUE(source->Read(0, 2 * kChunkBytes)->bytes == plain_.substr(0, 2 * kChunkBytes));
  EXPECT_FALSE(source->Read(2 * kChunkBytes - 1, 2).ok());
  EXPECT_FALSE(source->Read(2 * kChunkBytes, 1).ok());
  EXPECT_TRUE(source->Read(3 * kChunkBytes, 10).ok());
  EXPECT_FALSE(ReadAll(*source).ok());
}

TEST_F(AgeChunkDamageTest, APayloadBelongsToItsHeader) {
  // The same file key with a different nonce.
  std::string mixed = file_;
  mixed[start_ - 1] ^= 1;
  EXPECT_THAT(std::string(Decrypt(mixed).status().message()), HasSubstr("not authentic"));
  const AgeRecipients me{{TestIdentity().recipient}};
  const std::string other = *Encrypt(me, plain_);
  EXPECT_FALSE(Decrypt(other.substr(0, start_) + file_.substr(start_)).ok());
}

}  // namespace
}  // namespace permafrost::age

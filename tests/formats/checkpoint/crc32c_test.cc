// Tests of the checksum: published values, and agreement of both implementations at every length and alignment.
#include "io/crc32c.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace permafrost {
namespace {

TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising, falling;
  for (char i = 0; i < 32; ++i) rising.push_back(i);
  falling.assign(rising.rbegin(), rising.rend());
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(Crc32c(falling), 0x113fdb5cu);
}

TEST(Crc32c, MaskingIsThatOfTables) {
  // The end of a LevelDB block without entries (one restart at 0, type 0), stored in the file as C0 F2 A1 B0.
  EXPECT_EQ(MaskCrc32c(Crc32c(std::string("\0\0\0\0\1\0\0\0\0", 9))), 0xb0a1f2c0u);
}

TEST(Crc32c, ImplementationsAgree) {
  std::mt19937 random(1);
  std::string bytes(3 * 8192 * 2 + 1000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  const auto check = [&](size_t start, size_t size) {
    const absl::string_view part = absl::string_view(bytes).substr(start, size);
    ASSERT_EQ(Crc32c(part), internal::ExtendCrc32cPortably(0, part)) << start << " " << size;
    const size_t cut = size / 3;
    ASSERT_EQ(ExtendCrc32c(Crc32c(part.substr(0, cut)), part.substr(cut)), Crc32c(part)) << start << " " << size;
  };
  for (size_t size = 0; size < 1700; ++size) check(size % 9, size);
  for (const size_t strands : {3 * 8192, 6 * 8192}) {
    for (size_t more = 0; more < 20; ++more) {
      check(more, strands - 10 + more);
      check(1, strands + 760 + more);
    }
  }
}

}  // namespace
}  // namespace permafrost

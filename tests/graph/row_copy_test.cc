// Tests copies of rows of every short length.
#include "graph/base/row_copy.h"

#include <gtest/gtest.h>

#include <string>

namespace permafrost {
namespace {

TEST(CopyByteRows, WritesTheBytesOfEachRowAndNoOthers) {
  constexpr size_t kMostBytes = 300, kGap = 7;
  constexpr int64_t kRows = 4;
  for (size_t bytes = 0; bytes <= kMostBytes; ++bytes) {
    const size_t from_step = bytes + 3, to_step = bytes + kGap;
    std::string source(from_step * kRows, 0);
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 + bytes);
    std::string target(to_step * kRows, '.'), expected = target;
    for (size_t row = 0; row < kRows; ++row) {
      expected.replace(row * to_step, bytes, source, row * from_step, bytes);
    }
    // A copy of exact size, so that a sanitizer finds what is read behind the last row.
    source.resize(from_step * (kRows - 1) + bytes);
    source.shrink_to_fit();
    CopyByteRows(source.data(), static_cast<int64_t>(from_step), &target[0], static_cast<int64_t>(to_step), kRows,
                 bytes);
    EXPECT_EQ(target, expected) << bytes;
  }
}

}  // namespace
}  // namespace permafrost

// Tests of lists and masks of processors, and of errors.
#include "tools/model/processor_list.h"

#include <gtest/gtest.h>

namespace permafrost {
namespace {

TEST(ProcessorListTest, ReadsListsAndMasks) {
  EXPECT_EQ(*ParseProcessors("0-2,5"), std::vector<int>({0, 1, 2, 5}));
  EXPECT_EQ(*ParseProcessors("0x5"), std::vector<int>({0, 2}));
  for (const char* bad : {"", "a", "2-1", "-1", "0x", "0xg", "0x0", "1,,2", "0-99999"}) {
    EXPECT_EQ(ParseProcessors(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace permafrost

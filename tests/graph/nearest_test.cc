// Tests of suggestions for misspelt names.
#include "graph/base/nearest.h"

#include "gtest/gtest.h"

namespace permafrost {
namespace {

TEST(NearestTest, NearestFirst) {
  EXPECT_EQ(NearestNames("fold_cosntants", {"fold_batch_norms", "fold_constants", "round_weights"}),
            (std::vector<std::string>{"fold_constants"}));
  EXPECT_EQ(NearestNames("ab", {"abcd", "abc", "ba", "zz"}), (std::vector<std::string>{"abc", "ba", "abcd"}));
  EXPECT_EQ(NearestNames("softmax", {"model/softmax/Softmax"}), (std::vector<std::string>{"model/softmax/Softmax"}));
}

TEST(NearestTest, NoNearNames) {
  EXPECT_EQ(DidYouMean("quantize", {"identity"}), "");
  EXPECT_TRUE(NearestNames("", {"a"}).empty());
  EXPECT_TRUE(NearestNames(std::string(1 << 20, 'x'), {"x"}).empty());
  EXPECT_EQ(DidYouMean("inptu", {"input"}), "; did you mean 'input'?");
}

}  // namespace
}  // namespace permafrost

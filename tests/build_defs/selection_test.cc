// Tests the header that the build generates for the bundled model.
#include <gtest/gtest.h>

#include "absl/strings/string_view.h"
#include "ops_to_register.h"

namespace permafrost {
namespace {

constexpr bool IsListed(absl::string_view op) {
  for (const char* const listed : ops_to_register::kOps) {
    if (op == listed) return true;
  }
  return false;
}

static_assert(PERMAFROST_OPS_TO_REGISTER == 100, "the header carries its version");
static_assert(IsListed("Conv2D") && IsListed("Softmax"), "what the model holds is listed");
static_assert(!IsListed("LSTMBlockCell") && !IsListed("Conv2"), "what it does not hold is not");

TEST(SelectionTest, HoldsOneTypeOfConvolution) {
  constexpr unsigned long long kFloat = 1ull << 1, kDouble = 1ull << 2;
  EXPECT_TRUE(ops_to_register::kTypes & kFloat);
  EXPECT_FALSE(ops_to_register::kTypes & kDouble);
  int rows = 0;
  for (const ops_to_register::OpTypes& row : ops_to_register::kOpTypes) {
    if (absl::string_view(row.op) != "Conv2D" || absl::string_view(row.attr).empty()) continue;
    EXPECT_EQ(absl::string_view(row.attr), "T");
    EXPECT_EQ(row.types, kFloat);
    ++rows;
  }
  EXPECT_EQ(rows, 1);
}

}  // namespace
}  // namespace permafrost

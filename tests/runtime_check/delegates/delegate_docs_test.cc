// Tests that docs/delegates.md is up to date.
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/registered_delegates.h"

namespace permafrost {
namespace {

TEST(DelegateDocsTest, ThePageIsUpToDate) {
  std::ifstream file("docs/delegates.md");
  ASSERT_TRUE(file.is_open());
  std::stringstream text;
  text << file.rdbuf();
  const auto page = DelegateDocs(DocumentedDelegates());
  if (absl::IsUnavailable(page.status())) GTEST_SKIP() << page.status();
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(text.str() == *page) << "docs/delegates.md is stale: bazel run "
                                      "//tests/runtime_check/delegates:print_delegate_docs > docs/delegates.md";
}

}  // namespace
}  // namespace permafrost

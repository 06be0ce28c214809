// Tests that docs/kernels.md is up to date, and that every kernel has a description.
#include "runtime_check/kernels/kernel_docs.h"

#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "runtime_check/kernel.h"

namespace permafrost {
namespace {

TEST(KernelDocsTest, ThePageIsUpToDate) {
  std::ifstream file("docs/kernels.md");
  ASSERT_TRUE(file.is_open());
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_TRUE(page.str() == KernelDocs())
      << "docs/kernels.md is stale: bazel run //tests/runtime_check:print_kernel_docs > docs/kernels.md";
}

TEST(KernelDocsTest, EveryKernelSaysWhatItComputes) {
  ASSERT_FALSE(KernelOps().empty());
  for (const Op op : KernelOps()) EXPECT_FALSE(FindKernel(op)->formula().empty()) << op.name();
}

}  // namespace
}  // namespace permafrost

// What the tools let a model read.
#include "tools/run_options.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

TEST(RunOptionsTest, RegionsAreFiles) {
  const SessionOptions options = ToolSessionOptions(2, RealFileSystem());
  EXPECT_EQ(options.num_threads, 2);
  EXPECT_EQ(options.loop_limits.most_iterations, kMostLoopIterations);
  const std::string path = absl::StrCat(std::getenv("TEST_TMPDIR"), "/region");
  const float values[] = {1, 2, 3};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(values));
  const absl::StatusOr<Tensor> tensor = options.region_reader(path, DType::kFloat, Shape({3}));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->elements<float>()[2], 3);
  EXPECT_EQ(options.region_reader(path, DType::kFloat, Shape({4})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(options.region_reader(path + "_not", DType::kFloat, Shape({3})).ok());
  const absl::Status packaged = options.region_reader("memmapped_package://w", DType::kFloat, Shape({3})).status();
  EXPECT_EQ(packaged.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(packaged.message()), HasSubstr("'memmapped_package://w' lies in a memory-mapped package"));
}

}  // namespace
}  // namespace permafrost

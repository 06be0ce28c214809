// Tests that each file of bad/ is rejected with the expected error. For example, bad-x.error belongs to bad-x.pb: its
// first line is the status code, the rest the message.
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

TEST(BadFiles, AreRejectedWithTheExpectedMessage) {
  std::map<std::string, fs::path> files;
  for (const auto& entry : fs::directory_iterator(DataFile("tests/formats/bad"))) {
    if (entry.path().extension() != ".error") files[entry.path().filename()] = entry.path();
  }
  ASSERT_GE(files.size(), 12u);
  for (const auto& [name, path] : files) {
    const absl::StatusOr<std::string> expected =
        RealFileSystem().ReadFile(fs::path(path).replace_extension(".error").string());
    ASSERT_TRUE(expected.ok()) << expected.status();
    const FileView file = *RealFileSystem().MapFile(path.string());
    const absl::Status status = ReadModel(file).status();
    EXPECT_EQ(absl::StrCat(absl::StatusCodeToString(status.code()), "\n", status.message(), "\n"), *expected) << name;
  }
}

}  // namespace
}  // namespace permafrost

// Base class of tests that need files: each test has its own empty folder.
#ifndef PERMAFROST_TESTS_IO_TEST_IN_FOLDER_H_
#define PERMAFROST_TESTS_IO_TEST_IN_FOLDER_H_

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace permafrost {

class TestInFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  // Writes a file to the folder and returns its path.
  std::string Put(const std::string& name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  static std::string Get(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_IO_TEST_IN_FOLDER_H_

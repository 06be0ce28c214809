// Tests of the files with what delegates compile: damaged files, keys with equal hashes, links, and concurrent writers.
#include "tools/model/blob_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file_system.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

class BlobFilesTest : public testing::Test {
 protected:
  BlobFilesTest() : folder_(testing::TempDir() + "/blobs_" + std::to_string(getpid())) { fs::remove_all(folder_); }
  ~BlobFilesTest() override { fs::remove_all(folder_); }

  std::shared_ptr<DelegateBlobs> Open() const { return BlobFiles(RealFileSystem(), folder_); }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }
  static std::string Bytes(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static void Put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  const std::string folder_;
};

TEST_F(BlobFilesTest, KeepsBlobs) {
  const auto blobs = Open();
  EXPECT_EQ(blobs->Read("a"), std::nullopt);
  const std::string binary("\0\xFF\n blob", 8);
  blobs->Write("a", binary);
  blobs->Write("b", "");
  EXPECT_EQ(Open()->Read("a"), binary);
  EXPECT_EQ(Open()->Read("b"), "");
  blobs->Write("a", "new");
  EXPECT_EQ(Open()->Read("a"), "new");
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(BlobFilesTest, IgnoresDamagedFiles) {
  Open()->Write("key", "some bytes");
  ASSERT_EQ(Files().size(), 1u);
  const fs::path path = Files()[0];
  const std::string good = Bytes(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    Put(path, bad);
    EXPECT_EQ(Open()->Read("key"), std::nullopt) << "byte " << i;
    Put(path, good.substr(0, i));
    EXPECT_EQ(Open()->Read("key"), std::nullopt) << "length " << i;
  }
  Put(path, good + "x");
  EXPECT_EQ(Open()->Read("key"), std::nullopt);
  Open()->Write("key", "again");
  EXPECT_EQ(Open()->Read("key"), "again");
}

TEST_F(BlobFilesTest, TellsKeysApart) {
  Open()->Write("key", "bytes");
  const fs::path path = Files()[0];
  Open()->Write("other", "bytes of the other");
  for (const fs::path& file : Files()) {
    if (file != path) Put(path, Bytes(file));
  }
  EXPECT_EQ(Open()->Read("key"), std::nullopt);
}

TEST_F(BlobFilesTest, DoesNotFollowLinks) {
  Open()->Write("key", "bytes");
  const fs::path path = Files()[0], target = folder_ + "/target";
  fs::rename(path, target);
  fs::create_symlink(target, path);
  EXPECT_EQ(Open()->Read("key"), std::nullopt);
  Open()->Write("key", "new");
  EXPECT_EQ(Open()->Read("key"), "new");
  EXPECT_NE(Bytes(target).find("bytes"), std::string::npos) << "the target of a link is left unchanged";
}

TEST_F(BlobFilesTest, SurvivesAFolderThatCannotBeMade) {
  const auto blobs = BlobFiles(RealFileSystem(), "/proc/no such folder");
  blobs->Write("key", "bytes");
  EXPECT_EQ(blobs->Read("key"), std::nullopt);
}

// Two processes that store the same keys: readers see a whole blob of one of them.
TEST_F(BlobFilesTest, TwoProcessesWriteAtOnce) {
  Open()->Write("key", std::string(100000, 'a'));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  const auto blobs = Open();
  const std::string own(100000, child == 0 ? 'a' : 'b');
  bool is_whole = true;
  for (int i = 0; i < 200; ++i) {
    blobs->Write("key", own);
    const std::optional<std::string> read = blobs->Read("key");
    is_whole = is_whole && read.has_value() && (*read == std::string(100000, 'a') || *read == std::string(100000, 'b'));
  }
  if (child == 0) _exit(is_whole ? 0 : 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(is_whole);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace permafrost

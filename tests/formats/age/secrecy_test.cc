// Tests that converting one encrypted model to another never writes plaintext to a file.
#include <fcntl.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/model_file.h"
#include "io/posix_file_system.h"
#include "tests/formats/age/file_builder.h"

namespace permafrost::age {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Records all bytes written to any file.
class RecordingCalls : public SystemCalls {
 public:
  int Open(const char* path, int flags, mode_t mode) override {
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0) opened_.emplace_back(path);
    return SystemCalls::Open(path, flags, mode);
  }
  ssize_t Write(int file, const void* bytes, size_t size) override {
    const ssize_t count = SystemCalls::Write(file, bytes, size);
    if (count > 0) written_.append(static_cast<const char*>(bytes), static_cast<size_t>(count));
    return count;
  }
  const std::string& written() const { return written_; }
  const std::vector<std::string>& opened() const { return opened_; }

 private:
  std::string written_;
  std::vector<std::string> opened_;
};

TEST(AgeSecrecy, OnlyCiphertextIsWritten) {
  const fs::path folder = fs::path(::testing::TempDir()) / "secrecy";
  fs::remove_all(folder);
  fs::create_directories(folder);
  constexpr char kSecret[] = "the_secret_layer";
  Graph graph;
  // Large enough for several chunks.
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(graph.AddNode(std::string(kSecret) + std::to_string(i), Op::Named("NoOp")).ok());
  }
  RecordingCalls calls;
  PosixFileSystem files(&calls);
  const AgeRecipients me{{TestIdentity().recipient}};
  SaveOptions save;
  save.filters.push_back([&](ByteSink* out, uint64_t) { return EncryptInto(me, out); });
  const std::string first = (folder / "first.age").string(), second = (folder / "second.age").string();
  ASSERT_TRUE(SaveModel(files, graph, first, save).ok());
  OpenOptions open;
  open.keys = KeysInMemory(kTestIdentity);
  const absl::StatusOr<std::unique_ptr<Graph>> opened = OpenModel(files, first, open);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->num_nodes(), 5000u);
  ASSERT_TRUE(SaveModel(files, **opened, second, save).ok());
  EXPECT_EQ(calls.written().size(), fs::file_size(first) + fs::file_size(second));
  EXPECT_GT(fs::file_size(first), 2 * kChunkBytes);
  // Both files, unnamed in their folder or under their temporary name.
  for (const std::string& path : calls.opened()) {
    EXPECT_THAT(path, AnyOf(folder.string() + "/", HasSubstr(".permafrost-")));
  }
  EXPECT_EQ(calls.opened().size(), 2u);
  EXPECT_THAT(calls.written(), Not(HasSubstr("secret_layer")));
  EXPECT_THAT(calls.written(), Not(HasSubstr("NoOp")));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace permafrost::age

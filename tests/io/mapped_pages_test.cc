// Tests of released pages: those of mapped files are read again, and other memory keeps its content.
#include "io/mapped_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "io/file_system.h"
#include "tests/io/test_in_folder.h"

namespace permafrost {
namespace {

class MappedPagesTest : public TestInFolder {
 protected:
  // Returns the number of pages of `bytes` that are mapped into this process, from /proc/self/smaps.
  static size_t Resident(absl::string_view bytes) {
    const absl::StatusOr<std::string> maps = RealFileSystem().ReadFile("/proc/self/smaps");
    EXPECT_TRUE(maps.ok()) << maps.status();
    char address[32];
    snprintf(address, sizeof(address), "%lx-", reinterpret_cast<unsigned long>(bytes.data()));
    const size_t at = maps->find(address);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no mapping begins at " << address;
      return 0;
    }
    const std::string field = "\nRss:";
    return std::stoul(maps->substr(maps->find(field, at) + field.size()));
  }
  static unsigned Sum(absl::string_view bytes) {
    unsigned sum = 0;
    for (const char c : bytes) sum = sum * 31 + static_cast<unsigned char>(c);
    return sum;
  }
};

TEST_F(MappedPagesTest, ReleasedFilePagesAreReadAgain) {
  std::string content(4 << 20, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i / 7);
  const absl::StatusOr<FileView> file = RealFileSystem().MapFile(Put("file", content));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Sum(file->bytes), Sum(content));
  EXPECT_GE(Resident(file->bytes), 4096u);
  ReleasePages(file->bytes.substr(0, 2 << 20));
  EXPECT_LE(Resident(file->bytes), 2048u);
  ReleasePages(file->bytes.substr(1));
  EXPECT_LE(Resident(file->bytes), 4u) << "the first page is not all of it";
  EXPECT_EQ(Sum(file->bytes), Sum(content));
}

TEST_F(MappedPagesTest, OtherMemoryIsLeftAlone) {
  const std::string text(1 << 20, 'x');
  ReleasePages(text);
  EXPECT_EQ(text, std::string(1 << 20, 'x'));
  const absl::StatusOr<FileView> file = RealFileSystem().MapFile(Put("file", text));
  ASSERT_TRUE(file.ok()) << file.status();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const anonymous = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(anonymous, MAP_FAILED);
  char* const bytes = static_cast<char*>(anonymous);
  bytes[0] = bytes[3 * page] = 'y';
  ReleasePages({bytes, 4 * page});
  EXPECT_EQ(bytes[0], 'y');
  EXPECT_EQ(bytes[3 * page], 'y');
  munmap(anonymous, 4 * page);
  ReleasePages({});
}

TEST_F(MappedPagesTest, UnmappedMemoryIsForgotten) {
  const std::string path = Put("file", std::string(1 << 20, 'x'));
  absl::string_view bytes;
  {
    const absl::StatusOr<FileView> file = RealFileSystem().MapFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    bytes = file->bytes;
  }
  // New memory at the same address.
  void* const memory = mmap(const_cast<char*>(bytes.data()), bytes.size(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  static_cast<char*>(memory)[5000] = 'y';
  ReleasePages(bytes);
  EXPECT_EQ(static_cast<char*>(memory)[5000], 'y');
  munmap(memory, bytes.size());
}

TEST_F(MappedPagesTest, AnotherThreadReadsAhead) {
  const std::string content(4 << 20, 'x');
  FileView file = ReadAhead(RealFileSystem().MapFile(Put("file", content)).value());
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const probe = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(probe, MAP_FAILED);
  constexpr int kPopulateRead = 22;
  const bool is_supported = madvise(probe, page, kPopulateRead) == 0;
  munmap(probe, page);
  if (!is_supported) GTEST_SKIP() << "the kernel cannot read ahead";
  // This test does not touch the pages: without the thread, the loop would not terminate.
  while (Resident(file.bytes) < content.size() >> 10) std::this_thread::yield();
  EXPECT_EQ(file.bytes, content);
}

TEST_F(MappedPagesTest, ReadingAheadEndsWithTheLastOwner) {
  const std::string content(64 << 20, 'x');
  const std::string path = Put("file", content);
  for (int i = 0; i < 20; ++i) {
    FileView file = ReadAhead(RealFileSystem().MapFile(path).value());
    const Owner copy = file.owner;
    file.owner = nullptr;
    EXPECT_EQ(file.bytes[static_cast<size_t>(i) << 20], 'x');
  }
}

TEST_F(MappedPagesTest, OnlyLargeMappingsAreReadAhead) {
  const auto text = std::make_shared<const std::string>(4 << 20, 'x');
  const FileView memory = ReadAhead({*text, text});
  EXPECT_EQ(memory.owner, text);
  FileView small = RealFileSystem().MapFile(Put("small", "text")).value();
  const Owner owner = small.owner;
  EXPECT_EQ(ReadAhead(std::move(small)).owner, owner);
}

}  // namespace
}  // namespace permafrost
